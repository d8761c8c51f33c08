"""An option that is misspelt is named, with the one that is meant; on every version of Python
alike.
"""

import inspect

import pytest

from offbook.actors import ChatModelAgent, tool
from offbook.actors.agent import AgentOptions
from offbook.actors.chat_agent.chat_model_agent import ChatModelAgentOptions
from offbook.runtime import (
    ActorSystem,
    FailoverModel,
    LimitedModel,
    MemoryStore,
    ModelOptions,
    ModelSettings,
    OpenAIChatModel,
    Restart,
    RetryModel,
    Runner,
    ScriptedModel,
    UsageError,
)
from offbook.runtime.testing import tool_context

MODEL = ScriptedModel([])


def runner():
    return Runner(ChatModelAgent(name="A", model=MODEL), store=MemoryStore())


def look_up(key: str) -> str:
    """Look it up."""
    return key


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (
            lambda: Runner(ChatModelAgent(name="A", model=MODEL), durabilty="step"),
            r"Runner\(\) .*'durabilty'\. Did you mean 'durability'\?",
        ),
        (
            lambda: runner().run("q", timout=3),
            r"Runner\.run\(\) .*'timout'\. Did you mean 'timeout'\?",
        ),
        (
            lambda: runner().query("q", sesion_id="s"),
            r"Runner\.run\(\) .*'sesion_id'\. Did you mean 'session_id'\?",
        ),
        (
            lambda: runner().resume("c", target={}),
            r"Runner\.resume\(\) .*'target'\. Did you mean 'targets'\?",
        ),
        (
            lambda: runner().session("s", polcy=None),
            r"Runner\.session\(\) .*'polcy'\. Did you mean 'policy'\?",
        ),
        (
            lambda: runner().session("s").query("q", timout=3),
            r"Session\.run\(\) .*'timout'\. Did you mean 'timeout'\?",
        ),
        (
            lambda: ModelSettings(temprature=1),
            r"ModelSettings\(\) .*'temprature'\. Did you mean 'temperature'\?",
        ),
        (lambda: ScriptedModel([], chunk=3), r"ScriptedModel\(\) .*'chunk'\. It takes: "),
        (
            lambda: RetryModel(MODEL, max_retry=3),
            r"RetryModel\(\) .*'max_retry'\. Did you mean 'max_retries'\?",
        ),
        (
            lambda: LimitedModel(MODEL, max_concurency=3),
            r"LimitedModel\(\) .*Did you mean 'max_concurrency'\?",
        ),
        (
            lambda: FailoverModel([MODEL], model=3),
            r"FailoverModel\(\) .*'model'\. Did you mean 'models'\?",
        ),
        (lambda: ActorSystem(clok=None), r"ActorSystem\(\) .*'clok'\. Did you mean 'clock'\?"),
        (
            lambda: tool_context(answer=[1]),
            r"tool_context\(\) .*'answer'\. Did you mean 'answers'\?",
        ),
        (
            lambda: Restart(max_restart=3),
            r"Restart\(\) .*'max_restart'\. Did you mean 'max_restarts'\?",
        ),
    ],
)
def test_a_misspelt_option_is_named_with_the_one_that_is_meant(call, text):
    with pytest.raises(TypeError, match=text):
        call()


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (
            lambda: runner().map(["q"], concurency=3),
            r"map: unknown option 'concurency'.*Did you mean 'concurrency'\?",
        ),
        (
            lambda: runner().map(["q"], timout=3),
            r"map: unknown option 'timout'.*Did you mean 'timeout'\?",
        ),
        (
            lambda: tool(timout=3)(look_up),
            r"tool 'look_up': unknown option 'timout'\. Did you mean 'timeout'\?",
        ),
        (
            lambda: ModelOptions(temprature=1),
            r"ModelOptions\(temprature=\.\.\.\).*Did you mean 'temperature'\?",
        ),
        (
            lambda: OpenAIChatModel("m", api_key="k", temprature=1),
            r"OpenAIChatModel: .*'temprature'\. Did you mean 'temperature'\?",
        ),
    ],
)
def test_so_is_one_that_the_call_itself_looks_through(call, text):
    with pytest.raises(UsageError, match=text):
        call()


def test_an_option_that_resembles_none_is_answered_with_all_of_them():
    with pytest.raises(
        TypeError, match=r"'xyz'\. It takes: messages, checkpoint_id, session_id, .*context\."
    ):
        runner().run("q", xyz=1)


def test_other_mistakes_in_a_call_are_told_by_python():
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'messages'"):
        runner().run()


def test_a_type_error_from_further_down_is_not_taken_for_a_misspelt_option():
    def lines():
        raise TypeError("raised from within")
        yield

    with pytest.raises(TypeError, match="raised from within"):
        ScriptedModel(lines())


def test_type_checkers_know_each_option_of_a_chat_agent():
    taken = set(inspect.signature(ChatModelAgent.__init__).parameters) - {
        "self",
        "agent_options",
        "output_type",
    }
    assert (
        taken == ChatModelAgentOptions.__annotations__.keys() - AgentOptions.__annotations__.keys()
    )
