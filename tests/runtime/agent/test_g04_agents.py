"""G4, in runs: a crash of an agent's actor ends no other actor, and its parent learns of it
once.
"""

import asyncio
from copy import deepcopy

import pytest

from offbook.actors import Agent, ChatModelAgent, Parallel, Sequential, tool
from offbook.runtime import (
    ActorSystem,
    AgentError,
    AgentEvent,
    Backoff,
    Restart,
    Runner,
    ScriptedModel,
    ToolCalls,
)

CRASHES = [
    KeyboardInterrupt("c"),
    SystemExit(3),
    asyncio.CancelledError(),
    GeneratorExit(),
    ValueError("v"),
    BaseException("b"),
]
AT_ONCE = Restart(max_restarts=3, within=60, backoff=Backoff(initial=0, jitter=0))


class Crashing(Agent):
    def __init__(self, error, name="crashing", **options):
        super().__init__(name=name, **options)
        self.error = error

    async def run(self, input, context):
        yield AgentEvent.say("before")
        await asyncio.sleep(0)
        raise self.error


class Talking(Agent):
    async def run(self, input, context):
        for number in range(5):
            await asyncio.sleep(0)
            yield AgentEvent.say(str(number))


@pytest.mark.parametrize("error", CRASHES, ids=lambda error: type(error).__name__)
def test_g04_a_crash_is_one_error_event_and_its_siblings_go_on(run, error):
    async def main():
        async with ActorSystem() as system:
            agent = Parallel(
                name="all", sub_agents=[Talking(name="one"), Crashing(error), Talking(name="two")]
            )
            events = [event async for event in Runner(agent, system=system).query("go")]
            assert system.stats().actors == 0
        failures = [event for event in events if event.error is not None]
        assert [event.agent_name for event in failures] == ["crashing"]
        assert isinstance(
            failures[0].error, type(error) if isinstance(error, Exception) else AgentError
        )
        for name in ("one", "two"):
            assert [event.message.text for event in events if event.agent_name == name] == [
                "0",
                "1",
                "2",
                "3",
                "4",
            ]

    run(main())


@pytest.mark.parametrize("error", CRASHES, ids=lambda error: type(error).__name__)
def test_g04_the_run_has_failed_with_it(run, error):
    async def main():
        result = await Runner(
            Sequential(name="s", sub_agents=[Crashing(error), Talking(name="never")])
        ).query("go")
        assert result.status == "failed"
        assert isinstance(result.error, Exception)
        assert result.last_agent == "crashing"
        with pytest.raises(type(result.error)):
            result.raise_for_error()

    run(main())


@pytest.mark.parametrize(
    "error", [KeyboardInterrupt(), SystemExit(1)], ids=lambda error: type(error).__name__
)
@pytest.mark.parametrize("count", [1, 3])
def test_g04_a_tool_that_crashes_ends_its_agent_and_not_the_loop(run, error, count):
    @tool
    async def explode() -> str:
        """Explode."""
        await asyncio.sleep(0)
        raise error

    async def main():
        calls = ToolCalls(*[("explode", {}) for _ in range(count)])
        crashing = ChatModelAgent(name="crashing", model=ScriptedModel([calls]), tools=[explode])
        result = await Runner(
            Parallel(name="all", sub_agents=[crashing, Talking(name="talking")])
        ).query("go")
        assert result.status == "failed"
        assert type(error).__name__ in str(result.error)
        assert [event.message.text for event in result.events if event.agent_name == "talking"] == [
            "0",
            "1",
            "2",
            "3",
            "4",
        ]

    run(main())


def test_g04_an_agent_that_is_restarted_goes_on_from_its_last_recorded_step(run):
    """The tool that had ended is not called again, and the model is not asked again for what it has
    answered.
    """
    called = []
    failures = [True, True]

    @tool
    async def first() -> str:
        """First."""
        called.append("first")
        return "one"

    class Flaky(ScriptedModel):
        async def generate(self, request):
            if request.messages[-1].role == "tool" and failures:
                failures.pop()
                raise ConnectionError("gone")
            return await super().generate(request)

    async def main():
        model = Flaky([ToolCalls(first={}), "done"])
        agent = ChatModelAgent(name="a", model=model, tools=[first], on_failure=AT_ONCE)
        result = await Runner(agent).query("go")
        assert result.status == "completed"
        assert [event.message.text for event in result.events] == ["", "one", "done"]
        assert called == ["first"]
        assert len(model.requests) == 2
        assert [message.role for message in model.requests[-1].messages] == [
            "user",
            "assistant",
            "tool",
        ]

    run(main())


def test_g04_an_agent_that_fails_more_often_than_it_may_has_failed(run):
    async def main():
        result = await Runner(
            Crashing(
                ValueError("again"),
                on_failure=Restart(max_restarts=2, backoff=Backoff(initial=0, jitter=0)),
            )
        ).query("go")
        assert result.status == "failed"
        assert isinstance(result.error, ValueError)
        assert [event.message.text for event in result.events if event.message] == ["before"] * 3
        assert len([event for event in result.events if event.error]) == 1

    run(main())


def test_g04_a_run_is_cancelled_while_an_agent_waits_for_its_restart(run):
    async def main():
        agent = Crashing(ValueError("again"), on_failure=Restart(backoff=Backoff(initial=60)))
        a_run = Runner(agent).query("go")
        async for _ in a_run:
            break
        assert (await a_run).status == "cancelled"

    run(main())


def test_g04_state_that_was_not_recorded_is_not_there_after_a_restart(run):
    seen = []

    class Stateful(Agent):
        async def run(self, input, context):
            seen.append(deepcopy(context.state))
            if "step" not in context.state:
                context.state["step"] = [1]
                yield AgentEvent.say("one")
                context.state["step"].append(2)
                raise ValueError("lost")
            yield AgentEvent.say("two")

    async def main():
        result = await Runner(Stateful(name="s", on_failure=AT_ONCE)).query("go")
        assert result.status == "completed"
        assert seen == [{}, {"step": [1]}]
        assert [event.message.text for event in result.events] == ["one", "two"]

    run(main())


def test_g04_a_step_that_was_done_is_not_done_again_after_a_restart(run):
    done = []

    class Steps(Agent):
        async def run(self, input, context):
            async def work():
                done.append("work")
                return 42

            value = await context.step("work", work)
            if len(seen) == 0:
                seen.append(value)
                raise ValueError("lost")
            yield AgentEvent.say(str(value))

    seen = []

    async def main():
        result = await Runner(Steps(name="s", on_failure=AT_ONCE)).query("go")
        assert result.final_output == "42"
        assert done == ["work"]

    run(main())
