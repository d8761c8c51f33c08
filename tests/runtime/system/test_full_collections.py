"""`full_collections="paced"`: full garbage collections when the loop has little to do, or when memory
has grown by half.
"""

import asyncio
import gc
import json
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from offbook.actors import ChatModelAgent
from offbook.runtime import ActorSystem, MemoryStore, ScriptedModel, UsageError, service
from offbook.runtime.actor import current as directory
from offbook.runtime.system.full_collections import FullCollections, Memory, Pacing
from offbook.runtime.testing import ManualClock

PROGRAM = Path(__file__).parents[2] / "programs" / "collections_paced.py"
LOOK = 0.25  # seconds between two looks
DEFAULT = gc.get_threshold()
pytestmark = pytest.mark.skipif(
    DEFAULT[2] != 10, reason="the collector of this Python is an incremental one"
)


@pytest.fixture(autouse=True)
def as_python_has_it():
    """Each test begins with Python's thresholds, and leaves them."""
    gc.set_threshold(*DEFAULT)
    yield
    left = gc.get_threshold()
    gc.set_threshold(*DEFAULT)
    gc.enable()
    assert left == DEFAULT


def third():
    return gc.get_threshold()[2]


class World:
    """A process whose memory and whose loop's work a test decides."""

    def __init__(self):
        self.memory = Memory(10_000_000, 1_000)
        self.busy = 0.0
        self.clock = ManualClock()
        self.pacing = Pacing(lambda: self.memory)
        gc.collect(1)  # the test itself allocates less than would make Python collect
        self.before = gc.get_stats()[2]["collections"]

    def enter(self):
        return FullCollections(self.clock, self.pacing, lambda: self.busy)

    def grow(self, share, *, resident=False):
        if resident:
            self.memory = self.memory._replace(resident=int(1_000 * share))
        else:
            self.memory = self.memory._replace(blocks=int(10_000_000 * share))

    def look(self, *, busy=0.0):
        """The next look, before which the loop has worked for that share of the time."""
        self.busy += busy * LOOK
        self.clock.advance(LOOK)
        return self.collections()

    def collections(self):
        return gc.get_stats()[2]["collections"] - self.before


@pytest.fixture
def world():
    return World()


@pytest.mark.parametrize("resident", [False, True])
def test_a_full_collection_waits_for_a_loop_with_little_to_do(world, resident):
    paced = world.enter()
    world.grow(1.24, resident=resident)
    assert world.look() == 0
    world.grow(1.3, resident=resident)
    assert world.look(busy=0.5) == 0
    assert world.look() == 1
    assert world.look() == 1  # nothing has grown since
    paced.stop()


@pytest.mark.parametrize("resident", [False, True])
def test_a_full_collection_is_made_at_the_latest_when_memory_has_grown_by_half(world, resident):
    paced = world.enter()
    world.grow(1.49, resident=resident)
    assert world.look(busy=1.0) == 0
    world.grow(1.5, resident=resident)
    assert world.look(busy=1.0) == 1
    world.grow(2.2, resident=resident)
    assert world.look(busy=1.0) == 1
    world.grow(2.25, resident=resident)
    assert world.look(busy=1.0) == 2
    paced.stop()


def test_growth_begins_at_the_least_that_was_used(world):
    paced = world.enter()
    world.grow(0.5)
    assert world.look() == 0
    world.grow(0.75)
    assert world.look(busy=1.0) == 1
    paced.stop()


def test_growth_begins_anew_after_a_collection_of_the_program(world):
    paced = world.enter()
    world.grow(1.6)
    gc.collect()
    assert world.look(busy=1.0) == 1
    world.grow(2.3)
    assert world.look(busy=1.0) == 1
    paced.stop()


def test_the_loops_of_all_systems_have_little_to_do(world):
    first, clock = world.enter(), ManualClock()
    second = FullCollections(clock, world.pacing, lambda: 0.0)
    world.grow(1.3)
    assert world.look() == 0  # nothing is known of the other loop
    clock.advance(LOOK)
    assert world.collections() == 1
    second.stop()
    world.grow(1.7)
    assert world.look() == 2
    first.stop()


def test_python_itself_collects_if_the_loop_is_blocked(world):
    """The threshold is as many collections of young objects as may add a half to the memory."""
    young, middle, _ = DEFAULT
    rounds = 5_000_000 // (young * (middle + 1))
    paced = world.enter()
    assert 0 <= third() - gc.get_count()[2] - rounds <= 1
    world.grow(1.2)
    world.look()
    assert 0 <= third() - gc.get_count()[2] - 3_000_000 // (young * (middle + 1)) <= 1
    paced.stop()


def test_the_thresholds_are_restored_when_the_last_system_leaves(world):
    first, second = world.enter(), world.enter()
    assert third() > DEFAULT[2]
    first.stop()
    assert third() > DEFAULT[2]
    second.stop()
    second.stop()
    assert gc.get_threshold() == DEFAULT
    third_time = world.enter()
    assert third() > DEFAULT[2]
    third_time.stop()


def test_a_collector_that_is_disabled_is_left_alone(world):
    gc.disable()
    paced = world.enter()
    world.grow(2.0)
    assert world.look() == 0
    assert gc.get_threshold() == DEFAULT
    paced.stop()


def test_a_collector_that_is_disabled_later_is_left_alone(world):
    paced = world.enter()
    gc.disable()
    world.grow(2.0)
    assert world.look() == 0
    gc.enable()
    assert world.look() == 1
    paced.stop()


@pytest.mark.parametrize("thresholds", [(0, 10, 10), (700, 10, 50), (50_000, 20, 5)])
def test_thresholds_of_the_program_are_left_alone(world, thresholds):
    gc.set_threshold(*thresholds)
    paced = world.enter()
    world.grow(2.0)
    assert world.look() == 0
    paced.stop()
    assert gc.get_threshold() == thresholds
    gc.set_threshold(*DEFAULT)


def test_thresholds_that_the_program_sets_later_are_left_alone(world):
    paced = world.enter()
    gc.set_threshold(900, 11, 12)
    world.grow(2.0)
    assert world.look() == 0
    paced.stop()
    assert gc.get_threshold() == (900, 11, 12)
    gc.set_threshold(*DEFAULT)


def test_the_other_two_thresholds_are_the_programs(world):
    paced = world.enter()
    gc.set_threshold(50_000, 20)
    world.grow(2.0)
    assert world.look() == 1
    paced.stop()
    assert gc.get_threshold() == (50_000, 20, 10)
    gc.set_threshold(*DEFAULT)


def test_a_system_paces_them_while_it_runs(run):
    async def main():
        async with ActorSystem():
            assert gc.get_threshold() == DEFAULT
        system = ActorSystem(full_collections="paced")
        for _ in range(2):
            assert gc.get_threshold() == DEFAULT
            async with system:
                assert third() > DEFAULT[2]
        assert gc.get_threshold() == DEFAULT

    run(main())


def test_a_system_looks_by_its_clock(run):
    async def main():
        clock = ManualClock()
        async with ActorSystem(clock=clock, full_collections="paced"):
            for _ in range(3):
                assert clock.pending == (LOOK,)
                clock.advance(LOOK)
        assert clock.pending == ()

    run(main())


def test_two_systems_in_two_threads_share_it():
    with ActorSystem.in_thread(full_collections="paced"):
        with ActorSystem.in_thread(full_collections="paced"):
            assert third() > DEFAULT[2]
        assert third() > DEFAULT[2]
    assert gc.get_threshold() == DEFAULT


def test_systems_that_come_and_go_in_many_threads_leave_pythons_thresholds():
    def come_and_go():
        for _ in range(20):
            with ActorSystem.in_thread(full_collections="paced"):
                assert third() > DEFAULT[2]

    threads = [threading.Thread(target=come_and_go) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert gc.get_threshold() == DEFAULT


@pytest.mark.parametrize("value", [True, "frozen", 1, ""])
def test_other_values_are_refused(value):
    with pytest.raises(
        UsageError, match=r'^full_collections must be "paced" or None, got '
    ) as told:
        ActorSystem(full_collections=value)
    assert repr(value) in str(told.value)


def an_agent():
    return ChatModelAgent(name="A", model=ScriptedModel(["hello"]))


def test_a_service_paces_them(run):
    async def main():
        async with service(an_agent(), store=MemoryStore()) as runner:
            assert third() > DEFAULT[2]
            async with service(an_agent(), store=MemoryStore()):
                assert (await runner.query("?")).final_output == "hello"
            assert third() > DEFAULT[2]
        assert gc.get_threshold() == DEFAULT

    run(main())


def test_a_service_without_a_loop_paces_them():
    with service(an_agent(), store=MemoryStore()):
        assert third() > DEFAULT[2]
    assert gc.get_threshold() == DEFAULT


def test_a_service_in_a_system_leaves_it_to_that_system(run):
    async def main():
        async with ActorSystem(), service(an_agent(), store=MemoryStore()):
            assert gc.get_threshold() == DEFAULT

    run(main())


def told_by(*arguments):
    done = subprocess.run(
        [sys.executable, PROGRAM, *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_a_forked_process_has_pythons_thresholds_and_can_pace_its_own():
    assert told_by("fork") == {
        "child": [list(DEFAULT), True, list(DEFAULT)],
        "parent": [True, list(DEFAULT)],
    }


@pytest.mark.slow
@pytest.mark.parametrize("blocked", ["awaits", "blocks"])
def test_cycles_made_on_purpose_take_less_than_half_more_memory(blocked):
    paced, python = told_by("cycles", blocked, "paced"), told_by("cycles", blocked, "python")
    assert paced["most"] < 1.5 * python["most"], (paced, python)


def test_an_event_loop_that_was_closed_leaves_the_collections_to_python():
    """Its system can look no longer, and the threshold stays where it was: finite."""
    loop = asyncio.new_event_loop()
    system = ActorSystem(full_collections="paced")
    loop.run_until_complete(system.start())
    raised = third()
    loop.close()
    system.look_at_loop()
    directory.leave_loop(loop, system)
    assert DEFAULT[2] < raised
    assert gc.get_threshold() == DEFAULT
