"""The failure matrix, last part: every hook hangs until the system is left.

Leaving ends, everybody who asked is answered, and the log names who hung where.
"""

import asyncio
import itertools
from typing import NamedTuple

import pytest

from offbook.runtime import Actor, ActorDeadError, ActorSystem, Stop, ThreadActor
from tests.doubles.actors import Echo
from tests.doubles.failing_actors import RESTART, Asynchronous, Script, Synchronous, parent_of


class HangingScript(Script):
    """Holds the given hook of the given instance at a gate; one that is stubborn stays there when
    it is cancelled.
    """

    def __init__(self, hook, instance, gate, *, stubborn):
        super().__init__(hook, instance, None)
        self.gate, self.stubborn = gate, stubborn

    def play(self, hook, actor):
        self.calls.append((hook, actor.number))
        if (hook, actor.number) == self.strike and not isinstance(actor, Asynchronous):
            self.gate.block()

    async def hang(self, hook, actor):
        while (hook, actor.number) == self.strike and not self.gate.is_open():
            try:
                await self.gate.wait()
            except asyncio.CancelledError:
                if not self.stubborn:
                    raise


class HangingAsynchronous(Asynchronous):
    async def pause(self, hook):
        await self.script.hang(hook, self)


class Careful(Echo):
    """Says when it is stopped."""

    def __init__(self, log):
        super().__init__()
        self.log = log

    def on_stop(self):
        self.log.append("sibling stopped")


class Hang(NamedTuple):
    hook: str
    instance: int
    message: str | None  # what makes it happen
    shown: str  # how the log names it
    before: tuple = ()
    # A hook for cleaning up has its time; everything else is cancelled at once.
    cleans_up: bool = False


HANGS = {
    "on_start": Hang("on_start", 1, None, "on_start"),
    "handler (tell)": Hang("handler", 1, "work", "on_receive"),
    "handler (ask)": Hang("handler", 1, "work", "on_receive"),
    "proxy method": Hang("method", 1, None, "method"),
    "on_stop": Hang("on_stop", 1, None, "on_stop", cleans_up=True),
    "on_failure": Hang("on_failure", 1, "fail", "on_failure", cleans_up=True),
    "on_child_failure": Hang("on_child_failure", 1, "child", "on_child_failure"),
    "__init__ at restart": Hang("__init__", 2, "fail", "__init__", (RESTART,)),
    "on_start at restart": Hang("on_start", 2, "fail", "on_start", (RESTART,)),
}

HOW = {
    "asynchronous": (type("Victim", (HangingAsynchronous, Actor), {}), False),
    "asynchronous, stubborn": (type("Victim", (HangingAsynchronous, Actor), {}), True),
    "asynchronous in a thread": (type("Victim", (HangingAsynchronous, ThreadActor), {}), False),
    "asynchronous in a thread, stubborn": (
        type("Victim", (HangingAsynchronous, ThreadActor), {}),
        True,
    ),
    "blocks a thread": (type("Victim", (Synchronous, ThreadActor), {}), True),
}


async def ended(reply):
    return await reply


CASES = [
    (name, how)
    for name, how in itertools.product(HANGS, HOW)
    if not (name.startswith("__init__") and how != "blocks a thread")
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0]}-{case[1]}")
def test_g05_whatever_hangs_leaving_ends_and_everybody_is_answered(run, gate, errors, case):
    name, (victim, stubborn) = case[0], HOW[case[1]]
    hang, log = HANGS[name], []
    script = HangingScript(hang.hook, hang.instance, gate, stubborn=stubborn)

    async def story():
        system = ActorSystem(stop_timeout=0.05)
        await system.start()
        parent = system.spawn(parent_of(victim), (*hang.before, Stop()), name="parent")
        await parent.request((Careful, log))
        ref = await parent.request((victim, script))
        stopped = asyncio.ensure_future(ref.wait_stopped())
        asked = []
        if name == "proxy method":
            asked.append(ref.proxy().method())
        elif name == "handler (ask)":
            asked.append(ref.ask(hang.message, block=False))
        elif hang.message is not None:
            ref.tell(hang.message)
        if name == "on_stop":
            assert await ref.request("number") == 1
        else:
            await gate.reached()
            if name != "on_child_failure":
                asked.append(ref.ask("queued", block=False))
        await asyncio.wait_for(system.stop(), 10)
        assert not ref.is_alive()
        await asyncio.wait_for(stopped, 10)
        for reply in asked:
            with pytest.raises(ActorDeadError):
                await asyncio.wait_for(ended(reply), 1)
        assert log == ["sibling stopped"]
        assert system.stats().actors == 0
        return errors()

    async def main():
        try:
            return await story()
        finally:
            gate.open()
            for task in asyncio.all_tasks() - {asyncio.current_task()}:
                await asyncio.wait([task], timeout=5)  # what swallowed its cancellation ends now

    logged = run(main())
    about_hanging = [text for text in logged if "in on_receive: ArithmeticError" not in text]
    assert all("parent/victim" in text for text in about_hanging), (
        "whoever only waited for it is not blamed"
    )
    if stubborn or hang.cleans_up:
        assert any(hang.shown in text for text in about_hanging), logged
    else:
        assert about_hanging == [], "to be cancelled when the system is left is no failure"
