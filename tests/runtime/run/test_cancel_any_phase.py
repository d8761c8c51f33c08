"""What is ended from outside, in whatever phase it is, and what an agent leaves behind when it
ends: a run always comes to its end.
"""

import asyncio

import pytest

from offbook.actors import Agent, Loop, Parallel, Sequential
from offbook.runtime import AgentEvent, Runner, RunStatus


async def forever(_context):
    await asyncio.Event().wait()


def after(turns):
    async def wait(_context):
        for _ in range(turns):
            await asyncio.sleep(0)

    return wait


async def end_of(one):
    async def wait():
        return await one

    return await asyncio.wait_for(wait(), 15)


@pytest.mark.parametrize("turns", range(9))
@pytest.mark.parametrize("says", [(), ("m",)])
def test_a_loop_that_never_waits_is_cancelled_in_any_phase(run, actor, turns, says):
    async def main():
        loop = Loop(name="L", sub_agents=[actor("M", *says)], max_iterations=None)
        failing = actor("X", after(turns), ValueError("broken"))
        result = await end_of(
            Runner(Parallel(name="P", on_error="cancel", sub_agents=[loop, failing])).query("q")
        )
        assert (result.status, str(result.error)) == (RunStatus.FAILED, "broken")

    run(main())


@pytest.mark.parametrize("turns", range(9))
@pytest.mark.parametrize("workflow", ["loop", "sequence", "parallel"])
def test_a_run_is_cancelled_in_any_phase(run, actor, turns, workflow):
    async def main():
        tree = {
            "loop": lambda: Loop(name="W", sub_agents=[actor("M")], max_iterations=None),
            "sequence": lambda: Sequential(
                name="W",
                sub_agents=[
                    *(actor(f"M{n}", after(1), "m") for n in range(5)),
                    actor("Z", forever),
                ],
            ),
            "parallel": lambda: Parallel(
                name="W",
                sub_agents=[
                    *(actor(f"M{n}", after(n), "m") for n in range(5)),
                    actor("Z", forever),
                ],
            ),
        }[workflow]()
        one = Runner(tree).query("q")
        for _ in range(turns):
            await asyncio.sleep(0)
        one.cancel()
        assert (await end_of(one)).status is RunStatus.CANCELLED

    run(main())


class GivesUp(Agent):
    """Waits a little for its child, and then no longer."""

    def __init__(self, child, reached):
        super().__init__(name="A")
        self.child = child
        self.reached = reached

    async def run(self, input, context):
        try:
            async with asyncio.timeout(0.01):
                await context.cast(self.child)
        except TimeoutError:
            yield AgentEvent.say("gave up")


class Forgets(GivesUp):
    """Does not wait for its child at all."""

    async def run(self, input, context):
        task = asyncio.create_task(context.cast(self.child))
        await self.reached.wait()
        yield AgentEvent.say("gave up")
        task.cancel()


@pytest.mark.parametrize("parent", [GivesUp, Forgets])
def test_a_child_that_is_left_behind_ends_with_its_parent(run, lines, actor, parent):
    async def main():
        ended, reached = [], asyncio.Event()

        async def tidy(context):
            try:
                reached.set()
                await forever(context)
            finally:
                ended.append(context.agent_name)

        child = Sequential(name="C", sub_agents=[actor("D", "d", tidy, "never")])
        result = await end_of(
            Runner(
                Sequential(name="S", sub_agents=[parent(child, reached), actor("Z", "z")])
            ).query("q")
        )
        assert result.status is RunStatus.COMPLETED
        assert lines(result)[-2:] == ['A [S,A] assistant "gave up"', 'Z [S,A,Z] assistant "z"']
        assert ended == ["D"]

    run(main())


def test_the_error_for_which_the_others_were_cancelled_is_the_parallel_s(run, actor):
    class Untidy(Agent):
        async def run(self, input, context):
            yield AgentEvent.say("begun")
            try:
                await forever(context)
            finally:
                raise KeyError("while cleaning up")

    async def main():
        p = Parallel(
            name="P",
            on_error="cancel",
            sub_agents=[Untidy(name="U"), actor("X", after(5), ValueError("broken"))],
        )
        result = await end_of(Runner(p).query("q"))
        assert isinstance(result.error, ValueError)

    run(main())


def test_an_agent_that_does_not_let_itself_be_cancelled_ends_nevertheless_and_nothing_follows(
    run, actor
):
    class Refuses(Agent):
        async def run(self, input, context):
            try:
                await forever(context)
            except asyncio.CancelledError:
                yield AgentEvent.say("no")

    async def main():
        never = actor("Z", "never")
        p = Parallel(
            name="P",
            on_error="cancel",
            sub_agents=[
                Sequential(name="T", sub_agents=[Refuses(name="R"), never]),
                actor("X", after(5), ValueError("broken")),
            ],
        )
        result = await end_of(Runner(p).query("q"))
        assert (result.status, str(result.error), never.inputs) == (RunStatus.FAILED, "broken", [])

    run(main())


@pytest.mark.parametrize("inside", ["timeout", "wait_for", "group"])
def test_what_an_agent_cancels_within_itself_is_its_own_affair(run, inside):
    class Careful(Agent):
        async def run(self, input, context):
            try:
                if inside == "timeout":
                    async with asyncio.timeout(0.01):
                        await forever(context)
                elif inside == "wait_for":
                    await asyncio.wait_for(forever(context), 0.01)
                else:
                    async with asyncio.TaskGroup() as group:
                        group.create_task(forever(context))
                        group.create_task(self.fail())
            except* (TimeoutError, ValueError):
                pass
            yield AgentEvent.say("went on")

        async def fail(self):
            raise ValueError("one of the group")

    async def main():
        result = await end_of(Runner(Careful(name="A")).query("q"))
        assert (result.status, result.final_output) == (RunStatus.COMPLETED, "went on")

    run(main())


def test_an_agent_that_cancels_its_own_task_has_crashed(run, actor):
    async def cancel(_context):
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await asyncio.sleep(0)

    async def main():
        result = await end_of(
            Runner(
                Parallel(
                    name="P", sub_agents=[actor("A", after(2), cancel, "never"), actor("B", "b")]
                )
            ).query("q")
        )
        assert result.status is RunStatus.FAILED
        assert sorted(event.agent_name for event in result.events) == ["A", "B"]

    run(main())
