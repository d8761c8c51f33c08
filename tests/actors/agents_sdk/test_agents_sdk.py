"""The spellings of the Agents SDK: agents, running them, and what programs written for it take for granted."""

import asyncio

import pytest

from tests.doubles.handing import go
from understudy.actors import ChatModelAgent
from understudy.actors import agents_sdk as sdk
from understudy.runtime import Message, ModelSettings, ScriptedModel, UsageError


def agent(name, *script, **options):
    return sdk.Agent(name=name, model=ScriptedModel(script), **options)


def test_an_agent_is_a_chat_models_agent_by_other_names():
    made = sdk.Agent("A", "about A", instructions="Be A.", model=ScriptedModel([]))
    assert isinstance(made, ChatModelAgent)
    assert (made.name, made.description, made.handoff_description, made.instruction, made.instructions) == ("A", "about A", "about A", "Be A.", "Be A.")


@pytest.mark.parametrize(
    "instructions",
    [lambda context, agent: f"{agent.name} for {context.context}", lambda context: f"A for {context.context}"],
)
def test_instructions_may_be_a_function_of_the_context_and_the_agent(instructions):
    async def later(context, agent):
        await asyncio.sleep(0)
        return f"{agent.name} for {context.context}"

    for one in (instructions, later):
        made = agent("A", "hello", instructions=one)
        sdk.Runner.run_sync(made, "q", context="Ann")
        assert made.model.requests[0].messages[0] == Message.system("A for Ann")
        assert made.instructions is one


def test_a_clone_has_all_that_was_not_changed():
    @sdk.input_guardrail
    def guard(context, agent, value):
        return sdk.GuardrailFunctionOutput()

    class Hooks(sdk.AgentHooks):
        """None."""

    def instructions(context):
        return "Be A."

    made = agent("A", "hello", instructions=instructions, handoff_description="d", input_guardrails=[guard], output_guardrails=[sdk.OutputGuardrail(guard.guardrail_function)],
                 hooks=Hooks(), max_iterations=3, model_settings=ModelSettings(temperature=0.5), output_type=str, multiple_handoffs="last", exit_tool=True)  # fmt: skip
    made.handoffs = [agent("B")]
    twin = made.clone(name="twin")
    assert (twin.name, twin.handoff_description, twin.instructions) == ("twin", "d", instructions)
    for name in ("model", "handoffs", "hooks", "max_iterations", "model_settings", "output_type", "multiple_handoffs", "exit_name"):
        assert getattr(twin, name) == getattr(made, name), name
    assert (twin.input_guardrails, twin.output_guardrails) == (made.input_guardrails, made.output_guardrails)


def test_type_parameters_are_for_whoever_reads():
    made: sdk.Agent[dict] = sdk.Agent[dict](name="A", model=ScriptedModel(["hello"]))
    assert sdk.Runner.run_sync(made, "q").final_output == "hello"
    assert sdk.RunContextWrapper[dict].__origin__ is sdk.RunContextWrapper


def test_messages_may_be_dicts():
    made = agent("A", "hello")
    sdk.Runner.run_sync(
        made, [{"role": "developer", "content": "d"}, {"role": "user", "content": "u"}, {"role": "assistant", "content": "a"}, Message.user("m")]
    )
    assert made.model.requests[0].messages == (Message.system("d"), Message.user("u"), Message.assistant("a"), Message.user("m"))
    with pytest.raises(UsageError, match="is no Message"):
        sdk.Runner.run_sync(made, [{"role": "robot", "content": "x"}])


def test_what_a_run_fails_with_is_raised():
    for start in (sdk.Runner.run_sync, lambda *args: asyncio.run(sdk.Runner.run(*args)), lambda *args: asyncio.run(sdk.run(*args))):
        with pytest.raises(ValueError, match="no model"):
            start(agent("A", ValueError("no model")), "q")


def test_a_run_may_be_watched():
    async def story():
        run = sdk.Runner.run_streamed(agent("A", "one two"), "q")
        return [event.delta.content async for event in run if event.delta is not None]

    assert asyncio.run(story()) == ["one", " two"]


def test_a_runs_filter_and_hooks_are_given_where_it_starts():
    called = []

    class Hooks(sdk.RunHooks):
        def on_handoff(self, context, from_agent, to_agent):
            called.append((from_agent.name, to_agent.name))

    b = agent("B", "done")
    options = {"hooks": Hooks(), "handoff_input_filter": lambda data: data.clone(input_history="filtered", new_items=())}
    assert sdk.Runner.run_sync(agent("A", go("B"), handoffs=[b]), "q", **options).last_agent == "B"
    assert (called, [message.text for message in b.model.requests[0].messages]) == ([("A", "B")], ["filtered"])


@pytest.mark.parametrize(
    ("values", "model"),
    [
        ({"OPENAI_API_KEY": "k"}, "gpt-4.1"),
        ({"OPENAI_API_KEY": "k", "OPENAI_DEFAULT_MODEL": "d"}, "d"),
        ({"OPENAI_API_KEY": "k", "OPENAI_MODEL": "m", "OPENAI_DEFAULT_MODEL": "d"}, "m"),
        ({"OPENAI_API_KEY": "k", "ARK_API_KEY": "k", "ARK_CHAT_MODEL": "ark"}, "ark"),
    ],
)
def test_without_a_model_a_key_is_enough(values, model, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    for name in ("OPENAI_API_KEY", "OPENAI_MODEL", "OPENAI_DEFAULT_MODEL", "OPENAI_BASE_URL", "ARK_API_KEY", "ARK_CHAT_MODEL", "MODEL_TYPE", "OPENAI_BY_AZURE"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(UsageError, match="agent 'A' has no model"):
        sdk.Agent(name="A")
    for name, value in values.items():
        monkeypatch.setenv(name, value)
    assert repr(model)[1:-1] in repr(sdk.Agent(name="A").model)


def test_the_types_of_callbacks_have_their_names():
    def noted(context: sdk.RunContextWrapper) -> None: ...

    callback: sdk.OnHandoffWithoutInput = noted
    assert sdk.handoff(agent("B"), on_handoff=callback).tool_name == "transfer_to_b"
    assert sdk.OnHandoffWithInput[dict]
    assert sdk.THandoffInput.__name__ == "THandoffInput"


@pytest.mark.parametrize("enabled", [True, False, lambda context, whose: False])
def test_whether_a_handoff_is_enabled_can_be_asked(run, enabled):
    made = sdk.handoff(agent("B"), is_enabled=enabled)
    assert run(made.is_enabled_for_context(None, agent("A"))) is (enabled is True)
