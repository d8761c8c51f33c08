"""Hooks look on: which are called, in which order, with what, and that nothing they do changes a
run.
"""

import asyncio

import pytest

from offbook.actors import ChatModelAgent, Sequential, tool
from offbook.runtime import (
    AgentHooks,
    Message,
    ModelError,
    RunContext,
    RunHooks,
    Runner,
    ScriptedModel,
    ToolCalls,
    Usage,
    UsageError,
)

RUN_HOOKS = [name for name in vars(RunHooks) if name.startswith("on_")]
AGENT_HOOKS = [name for name in vars(AgentHooks) if name.startswith("on_")]


@tool
def echo(text: str) -> str:
    return text


def describe(value):
    return getattr(value, "name", None) or getattr(value, "text", None) or type(value).__name__


def noting(base, log, prefix, kind="def"):
    """An instance of a class with all hooks of that kind, which write down what they are given."""

    def make(name):
        def note(self, context, *args):
            assert isinstance(context, RunContext)
            log.append(" ".join([f"{prefix}{name}", *map(describe, args)]))

        async def note_async(self, context, *args):
            await asyncio.sleep(0)
            note(self, context, *args)

        return note if kind == "def" else note_async

    return type(
        "Noting",
        (base,),
        {name: make(name) for name in (RUN_HOOKS if base is RunHooks else AGENT_HOOKS)},
    )()


def tree(hooks=None, script=None):
    weather = ChatModelAgent(name="weather", model=ScriptedModel(["25 degrees"]), hooks=hooks)
    calls = script or [
        ToolCalls(echo={"text": "x"}),
        ToolCalls(transfer_to_agent={"agent_name": "weather"}),
    ]
    return ChatModelAgent(
        name="router", model=ScriptedModel(calls), tools=[echo], sub_agents=[weather]
    )


WHOLE_RUN = [
    "on_run_start AgentInput",
    "on_agent_start router",
    "on_model_start router ModelRequest",
    "on_model_end router Message",
    "on_tool_start router echo echo",
    "on_tool_end router echo x",
    "on_model_start router ModelRequest",
    "on_model_end router Message",
    "on_tool_start router transfer_to_agent transfer_to_agent",
    "on_tool_end router transfer_to_agent successfully transferred to agent [weather]",
    "on_agent_end router Outcome",
    "on_transfer router weather",
    "on_agent_start weather",
    "on_model_start weather ModelRequest",
    "on_model_end weather 25 degrees",
    "on_agent_end weather Outcome",
    "on_run_end 25 degrees",
]


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize("kind", ["def", "async def"])
def test_the_hooks_of_a_run_tell_its_story(kind, streaming):
    log = []
    result = (
        Runner(tree(), hooks=noting(RunHooks, log, "", kind))
        .query("go", streaming=streaming)
        .result(20)
    )
    assert log == WHOLE_RUN
    assert result.status == "completed"


@pytest.mark.parametrize("kind", ["def", "async def"])
def test_the_hooks_of_an_agent_tell_what_it_does(kind):
    log = []
    Runner(tree(noting(AgentHooks, log, "", kind))).query("go").result(20)
    assert log == [
        "on_transfer weather router",
        "on_start weather",
        "on_model_start weather ModelRequest",
        "on_model_end weather 25 degrees",
        "on_end weather Outcome",
    ]


def test_the_runs_hook_comes_before_the_agents():
    log = []
    agent = ChatModelAgent(
        name="a",
        model=ScriptedModel([ToolCalls(echo={"text": "x"}), "done"]),
        tools=[echo],
        hooks=noting(AgentHooks, log, "own "),
    )
    Runner(agent, hooks=noting(RunHooks, log, "")).query("go").result(20)
    names = [
        line.split()[0] if not line.startswith("own") else "own " + line.split()[1] for line in log
    ]
    both = {"on_agent_start": "own on_start", "on_agent_end": "own on_end"}
    for index, name in enumerate(names):
        if not name.startswith("own") and not name.startswith("on_run"):
            assert names[index + 1] == both.get(name, f"own {name}")


def test_a_workflow_is_an_agent_too():
    log = []
    agents = [ChatModelAgent(name=name, model=ScriptedModel(["x"])) for name in ("a", "b")]
    Runner(Sequential(name="s", sub_agents=agents), hooks=noting(RunHooks, log, "")).query(
        "go"
    ).result(20)
    told = [line for line in log if "agent" in line]
    assert told == [
        "on_agent_start s",
        "on_agent_start a",
        "on_agent_end a Outcome",
        "on_agent_start b",
        "on_agent_end b Outcome",
        "on_agent_end s Outcome",
    ]


def test_the_context_has_the_session_and_what_was_spent():
    usage = Usage(10, 5, 0, 1)
    seen = []

    class Hooks(RunHooks):
        def on_run_start(self, context, input):
            context.set("from hook", 1)
            seen.append(
                (
                    context.run_id,
                    context.session_id,
                    context.get("given"),
                    context.usage,
                    input.messages,
                )
            )

        def on_model_start(self, context, agent, request):
            assert context.session["from hook"] == 1

        async def on_run_end(self, context, result):
            context.delete("given")
            seen.append(
                (context.usage, result.usage, result.status, result.output, len(result.events))
            )

    agent = ChatModelAgent(
        name="a",
        instruction="{from hook}{given}",
        model=ScriptedModel([Message.assistant("done", usage=usage)]),
    )
    run = Runner(agent, hooks=Hooks()).query("go", session_values={"given": 2}, session_id="s1")
    run.result(20)
    assert seen == [
        (run.id, "s1", 2, Usage(), (Message.user("go"),)),
        (usage, usage, "completed", "done", 1),
    ]


def test_a_hook_may_put_a_value_that_the_instruction_uses():
    class Hooks(AgentHooks):
        def on_start(self, context, agent):
            context.set("who", agent.name)

    model = ScriptedModel(["done"])
    result = (
        Runner(ChatModelAgent(name="a", instruction="I am {who}", model=model, hooks=Hooks()))
        .query("go")
        .result(20)
    )
    assert model.requests[0].messages[0].text == "I am a"
    assert result.session_values == {"who": "a"}


@pytest.mark.parametrize(
    ("script", "kind"),
    [
        ([ModelError("down")], "failed"),
        (["x"], "finished"),
        ([ToolCalls(exit={"final_result": "x"})], "exited"),
    ],
)
def test_the_end_of_an_agent_and_of_a_run_is_told_however_it_comes(script, kind):
    told = []

    class Hooks(RunHooks):
        def on_agent_end(self, context, agent, outcome):
            told.append(outcome.kind)

        def on_run_end(self, context, result):
            told.append(result.status)

    Runner(
        ChatModelAgent(name="a", model=ScriptedModel(script), exit_tool=True), hooks=Hooks()
    ).query("go").result(20)
    assert told == [kind, "failed" if kind == "failed" else "completed"]


def test_the_end_of_a_run_that_is_cancelled_is_told(run):
    told = []

    async def main():
        started = asyncio.Event()

        class Hooks(RunHooks):
            def on_model_start(self, context, agent, request):
                started.set()

            async def on_agent_end(self, context, agent, outcome):
                told.append(outcome.kind)

            async def on_run_end(self, context, result):
                told.append(result.status)

        agent = ChatModelAgent(name="a", model=ScriptedModel(["never"], delay=60))
        handle = Runner(agent, hooks=Hooks()).query("go")
        await started.wait()
        handle.cancel()
        return await handle

    assert run(main()).status == "cancelled"
    assert told == ["cancelled", "cancelled"]


# --- hooks that raise ---


@pytest.mark.parametrize("kind", ["def", "async def"])
@pytest.mark.parametrize("base", [RunHooks, AgentHooks])
def test_hooks_that_raise_are_logged_and_change_nothing(base, kind, caplog):
    def fail(self, *args):
        raise LookupError("hook")

    async def fail_async(self, *args):
        raise LookupError("hook")

    names = RUN_HOOKS if base is RunHooks else AGENT_HOOKS
    made = type("Failing", (base,), dict.fromkeys(names, fail if kind == "def" else fail_async))()
    plain = Runner(tree()).query("go").result(20)
    result = (
        Runner(tree(made if base is AgentHooks else None), hooks=made if base is RunHooks else None)
        .query("go")
        .result(20)
    )
    assert result.status == "completed"
    assert [event.message.text for event in result.events] == [
        event.message.text for event in plain.events
    ]
    logged = [record for record in caplog.records if record.name.startswith("offbook.")]
    assert len(logged) == (len(WHOLE_RUN) if base is RunHooks else 5)
    assert all(record.exc_info and "Failing.on_" in record.getMessage() for record in logged)


@pytest.mark.parametrize(
    "name", [name for name in RUN_HOOKS if name not in ("on_handoff", "on_run_end")]
)
def test_a_hook_whose_own_work_is_cancelled_changes_nothing(name):
    async def cancelled(self, *args):
        future = asyncio.get_running_loop().create_future()
        future.cancel()
        await future

    made = type("Cancelled", (RunHooks,), {name: cancelled})()
    result = Runner(tree(), hooks=made).query("go", timeout=10).result(20)
    assert result.status == "completed", repr(result.error)


def test_what_a_hook_returns_is_not_used():
    made = type(
        "Returning",
        (RunHooks,),
        {name: lambda self, *args: Message.user("other") for name in RUN_HOOKS},
    )()
    assert Runner(tree(), hooks=made).query("go").result(20).final_output == "25 degrees"


# --- classes that are wrong ---


@pytest.mark.parametrize(
    ("base", "name"),
    [
        (RunHooks, "on_start"),
        (RunHooks, "on_agent_started"),
        (AgentHooks, "on_run_start"),
        (AgentHooks, "on_tool_finish"),
    ],
)
def test_a_hook_that_there_is_not_is_refused_when_the_class_is_made(base, name):
    with pytest.raises(UsageError, match=f"Wrong.{name}: unknown hook"):
        type("Wrong", (base,), {name: lambda self, context, agent: None})


@pytest.mark.parametrize(
    "hook",
    [
        lambda self: None,
        lambda self, context: None,
        lambda self, context, agent, more, again: None,
        lambda self, context, *, agent: None,
        lambda: None,
        5,
        "text",
    ],
)
def test_a_hook_with_the_wrong_signature_is_refused_when_the_class_is_made(hook):
    with pytest.raises(
        UsageError,
        match=r"Wrong.on_agent_start has the wrong signature.*on_agent_start\(context, agent\)",
    ):
        type("Wrong", (RunHooks,), {"on_agent_start": hook})


def test_hooks_may_be_static_or_class_methods_take_defaults_and_be_inherited():
    log = []

    class Base(RunHooks):
        @staticmethod
        def on_run_start(context, input):
            log.append("static")

        @classmethod
        def on_agent_start(cls, context, agent):
            log.append("class")

        def on_model_start(self, *args):
            log.append("args")

        def helper(self):
            log.append("helper")

    class Derived(Base):
        def on_agent_end(self, context, agent, outcome, extra=None):
            self.helper()

    Runner(tree(script=["done"]), hooks=Derived()).query("go").result(20)
    assert log == ["static", "class", "args", "helper"]


@pytest.mark.parametrize("wrong", [object(), RunHooks, "hooks", print])
def test_what_is_no_hooks_is_refused(wrong):
    with pytest.raises(UsageError, match="hooks"):
        Runner(tree(), hooks=wrong)
    with pytest.raises(UsageError, match="hooks"):
        tree(hooks=wrong)


def test_hooks_of_the_other_kind_are_refused():
    with pytest.raises(UsageError, match="RunHooks"):
        Runner(tree(), hooks=AgentHooks())
    with pytest.raises(UsageError, match="AgentHooks"):
        tree(hooks=RunHooks())
