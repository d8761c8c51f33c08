"""`add_global_hooks`: hooks that look on at all runs of the process."""

import pytest

from offbook.actors import ChatModelAgent, tool
from offbook.runtime import (
    ActorSystem,
    AgentHooks,
    MemoryStore,
    RunHooks,
    Runner,
    ScriptedModel,
    ToolCalls,
    UsageError,
    add_global_hooks,
)

RUN_HOOKS = [name for name in vars(RunHooks) if name.startswith("on_")]


@tool
def echo(text: str) -> str:
    return text


class Noting(RunHooks):
    def __init__(self, log, name="global"):
        self.log, self.name = log, name

    def on_run_start(self, context, input):
        self.log.append(f"{self.name}: {input.messages[0].text}")

    async def on_run_end(self, context, result):
        self.log.append(f"{self.name}: {result.status}")


@pytest.fixture
def add():
    """Adds hooks, and removes them when the test is over."""
    removers = []

    def added(hooks):
        removers.append(add_global_hooks(hooks))
        return removers[-1]

    yield added
    for remove in removers:
        remove()


def agent_of(*script, **options):
    return ChatModelAgent(name="a", model=ScriptedModel(script), tools=[echo], **options)


def test_they_look_on_at_the_runs_of_all_runners(add, run):
    log = []
    add(Noting(log))
    Runner(agent_of("x")).query("one").result().raise_for_error()

    async def main():
        async with ActorSystem() as system:
            await Runner(agent_of("x"), system=system).query("two")
        await agent_of("x").generate("three")

    run(main())
    assert log == [
        f"global: {what}" for text in ("one", "two", "three") for what in (text, "completed")
    ]


def test_what_was_returned_removes_them_and_no_others(add):
    log = []
    hooks = Noting(log)
    first, second = add(hooks), add(hooks)
    first()
    first()
    Runner(agent_of("x")).query("one").result()
    assert log == ["global: one", "global: completed"]
    second()
    Runner(agent_of("x")).query("two").result()
    assert log == ["global: one", "global: completed"]


def test_the_global_ones_come_first_then_the_runs_then_the_agents(add):
    log = []

    def naming(base, prefix, names):
        return type(
            "Naming",
            (base,),
            {
                name: lambda self, context, *args, name=name: log.append(f"{prefix} {name}")
                for name in names
            },
        )()

    both = [name for name in RUN_HOOKS if name in vars(AgentHooks)]
    add(naming(RunHooks, "first", both))
    add(naming(RunHooks, "second", both))
    agent = agent_of(ToolCalls(echo={"text": "x"}), "done", hooks=naming(AgentHooks, "agent", both))
    Runner(agent, hooks=naming(RunHooks, "run", both)).query("go").result().raise_for_error()
    calls = [
        "on_model_start",
        "on_model_end",
        "on_tool_start",
        "on_tool_end",
        "on_model_start",
        "on_model_end",
    ]
    assert log == [f"{who} {name}" for name in calls for who in ("first", "second", "run", "agent")]


def test_one_that_raises_is_logged_and_the_others_are_called(add, caplog):
    def fail(self, *args):
        raise ValueError("no")

    log = []
    add(type("Failing", (RunHooks,), dict.fromkeys(RUN_HOOKS, fail))())
    add(Noting(log))
    result = Runner(agent_of("x"), hooks=Noting(log, "run")).query("go").result()
    assert result.final_output == "x"
    assert log == ["global: go", "run: go", "global: completed", "run: completed"]
    logged = [
        record.getMessage() for record in caplog.records if record.name.startswith("offbook.")
    ]
    assert len(logged) == 6
    assert all("Failing.on_" in message for message in logged)


def test_a_run_keeps_those_that_were_there_when_it_was_made(add):
    log = []
    before = Runner(agent_of("x")).query("before")  # it begins at its first use
    remove = add(Noting(log))
    within = Runner(agent_of("x")).query("within")
    remove()
    before.result()
    within.result()
    assert log == ["global: within", "global: completed"]


def test_they_look_on_when_a_run_is_resumed(add):
    @tool(needs_approval=True)
    def pay() -> str:
        return "paid"

    log = []
    agent = ChatModelAgent(name="a", model=ScriptedModel([ToolCalls(pay={}), "done"]), tools=[pay])
    runner = Runner(agent, store=MemoryStore())
    (waits,) = runner.query("go").result().interrupts
    add(Noting(log))
    runner.approve(waits).result().raise_for_error()
    assert log == ["global: go", "global: completed"]


@pytest.mark.parametrize("wrong", [None, AgentHooks(), RunHooks])
def test_what_is_no_hooks_of_runs_is_refused(wrong):
    with pytest.raises(
        UsageError, match=r"hooks must be an instance of a subclass of offbook.runtime.RunHooks"
    ):
        add_global_hooks(wrong)
