"""Definitions that are wrong: each is refused where it is made, or when its Runner is, with an
error that says what and where.
"""

import re

import pytest

from offbook.actors import (
    ChatModelAgent,
    Loop,
    Middleware,
    Parallel,
    Sequential,
    Tool,
    exit_tool,
    tool,
    transfer_tool,
)
from offbook.runtime import (
    AgentHooks,
    Message,
    ModelSettings,
    OpenAIChatModel,
    RunHooks,
    Runner,
    ScriptedModel,
    ToolCalls,
    UsageError,
)

MODEL = ScriptedModel([])


@tool
def echo(text: str) -> str:
    return text


@tool(name="echo")
def other_echo(text: str) -> str:
    return text


class Nothing(Middleware):
    pass


other = ChatModelAgent(name="other", model=MODEL)

# What is given, and words of the error: the agent's name is in each.
WRONG = {
    "two tools of one name": ({"tools": [echo, other_echo]}, "two tools named 'echo'"),
    "one tool twice": ({"tools": [echo, echo]}, "two tools named 'echo'"),
    "exit twice": ({"tools": [exit_tool], "exit_tool": True}, "two tools named 'exit'"),
    "an agent among the tools": ({"tools": [other]}, "'other'.*as_tool"),
    "a number among the tools": ({"tools": [5]}, "5"),
    "None among the tools": ({"tools": [None]}, "None"),
    "a text as tools": ({"tools": "echo"}, "tool"),
    "return_directly names nothing": (
        {"tools": [echo], "return_directly": ["ecko"]},
        "return_directly.*ecko.*echo",
    ),
    "return_directly without tools": ({"return_directly": "echo"}, "return_directly.*echo"),
    "no iterations": ({"max_iterations": 0}, "max_iterations must be .*, got 0"),
    "fewer than no iterations": ({"max_iterations": -1}, "max_iterations must be .*, got -1"),
    "unknown on_tool_error": (
        {"on_tool_error": "ignore"},
        "on_tool_error must be 'report' or 'raise', got 'ignore'",
    ),
    "a middleware that is none": ({"middleware": [object()]}, "middleware"),
    "a class as a middleware": ({"middleware": [Nothing]}, "middleware"),
    "a function as a middleware": ({"middleware": [print]}, "middleware"),
    "a model that is none": ({"model": object()}, "generate"),
    "a number as a model": ({"model": 5}, "generate"),
    "hooks of a run": ({"hooks": RunHooks()}, "AgentHooks"),
    "a class as hooks": ({"hooks": AgentHooks}, "AgentHooks"),
    "an agent as sub_agents": ({"sub_agents": other}, "sub_agents"),
    "a tool among the sub_agents": ({"sub_agents": [echo]}, "sub_agents must contain"),
    "unknown history": ({"history": "all"}, "history must be .*, got 'all'"),
    "on_failure that is none": ({"on_failure": True}, "on_failure"),
    "exit_tool that is none": ({"exit_tool": "exit"}, "exit"),
    "one middleware, not in a list": ({"middleware": Nothing()}, "middleware"),
    "one tool, not in a list": ({"tools": echo}, "tools"),
    "one function, not in a list": ({"tools": print}, "tools"),
    "a class as a model": ({"model": ScriptedModel}, "model"),
    "iterations as a text": ({"max_iterations": "3"}, "max_iterations"),
    "iterations that are no whole number": ({"max_iterations": 1.5}, "max_iterations"),
    "a number as the instruction": ({"instruction": 5}, "instruction"),
    "a number as output_key": ({"output_key": 5}, "output_key"),
    "unknown_tool that cannot be called": ({"unknown_tool": "x"}, "unknown_tool"),
    "make_model_input that cannot be called": ({"make_model_input": 5}, "make_model_input"),
    "a dict as model_settings": ({"model_settings": {"temperature": 1}}, "model_settings"),
    "return_directly with numbers": ({"tools": [echo], "return_directly": 5}, "return_directly"),
}


@pytest.mark.parametrize(("given", "words"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_said_when_the_agent_is_made(given, words):
    with pytest.raises(UsageError, match=words) as problem:
        ChatModelAgent(**{"name": "mine", "model": MODEL, **given})
    assert "'mine'" in str(problem.value)


@pytest.mark.parametrize("name", ["", None, 5, b"a"])
def test_an_agent_needs_a_name(name):
    with pytest.raises(UsageError, match="name"):
        ChatModelAgent(name=name, model=MODEL)


def test_parameters_that_there_are_not_are_refused_by_python():
    with pytest.raises(TypeError, match="instructs"):
        ChatModelAgent(name="mine", model=MODEL, instructs="Be brief.")


# --- without a model ---


@pytest.fixture
def bare(monkeypatch):
    """An environment that names no model and holds no key."""
    for name in (
        "OPENAI_API_KEY",
        "OPENAI_MODEL",
        "OPENAI_BASE_URL",
        "OPENAI_BY_AZURE",
        "ARK_API_KEY",
        "ARK_CHAT_MODEL",
        "ARK_BASE_URL",
    ):
        monkeypatch.delenv(name, raising=False)


def test_no_model_at_all_is_said_when_the_agent_is_made(bare):
    with pytest.raises(UsageError, match="'mine' has no model") as problem:
        ChatModelAgent(name="mine")
    assert re.search("OPENAI_|ARK_", str(problem.value))


def test_a_model_by_name_needs_a_key_when_it_is_first_asked(bare, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    agent = ChatModelAgent(name="mine", model="gpt-4o")
    with pytest.raises(UsageError, match="OPENAI_API_KEY"):
        _ = Runner(agent).query("hello").result(20).text


def test_a_model_by_name_finds_its_key_in_a_env_file(bare, tmp_path, monkeypatch):
    (tmp_path / ".env").write_text(
        "OPENAI_API_KEY=of-file\nOPENAI_BASE_URL=http://127.0.0.1:9/v1\n"
    )
    monkeypatch.chdir(tmp_path)
    model = ChatModelAgent(name="mine", model="gpt-4o").model
    assert (model.model, model._api_key, model._base_url) == (
        "gpt-4o",
        "of-file",
        "http://127.0.0.1:9/v1",
    )
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    model = ChatModelAgent(name="mine", model="gpt-4o").model
    assert (model._api_key, model._base_url) == (None, None), (
        "the file's address is not sent the environment's key"
    )


def test_a_model_by_name_is_one_of_openais(bare, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    agent = ChatModelAgent(name="mine", model="gpt-4o")
    assert isinstance(agent.model, OpenAIChatModel)


def test_an_empty_name_of_a_model_is_refused(bare, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    with pytest.raises(UsageError, match="model"):
        ChatModelAgent(name="mine", model="")


# --- what only the tree can tell ---


@pytest.mark.parametrize(
    "made",
    [transfer_tool, tool(name="transfer_to_agent")(lambda agent_name: agent_name)],
    ids=["ours", "theirs"],
)
def test_a_tool_named_as_the_transfer_beside_sub_agents_is_refused(made):
    agent = ChatModelAgent(name="mine", model=MODEL, tools=[made], sub_agents=[other])
    with pytest.raises(UsageError, match=r"'mine'.*transfer_to_agent.*Rename"):
        Runner(agent)


def test_without_anybody_to_hand_over_to_that_name_is_free():
    made = tool(name="transfer_to_agent")(lambda where: f"went {where}")
    model = ScriptedModel([ToolCalls(transfer_to_agent={"where": "home"}), "done"])
    result = Runner(ChatModelAgent(name="mine", model=model, tools=[made])).query("go").result(20)
    assert [event.message.text for event in result.events] == ["", "went home", "done"]


def test_names_are_unique_in_the_tree_and_an_agent_has_one_parent():
    twice = ChatModelAgent(name="other", model=MODEL)
    with pytest.raises(UsageError, match="other"):
        Runner(ChatModelAgent(name="mine", model=MODEL, sub_agents=[other, twice]))
    with pytest.raises(UsageError, match="mine"):
        Runner(
            ChatModelAgent(
                name="mine", model=MODEL, sub_agents=[ChatModelAgent(name="mine", model=MODEL)]
            )
        )


# --- messages ---


@pytest.mark.parametrize(
    "messages",
    [None, 5, [5], [None], ["hi"], {"role": "user"}, [{"role": "user", "content": "hi"}]],
    ids=str,
)
def test_what_are_no_messages_is_refused(messages):
    with pytest.raises(UsageError, match="Message"):
        Runner(other).run(messages)


def test_a_query_is_a_text():
    with pytest.raises(UsageError, match="query"):
        Runner(other).query([Message.user("hi")])


# --- what is right, although it looks wrong ---


def test_functions_become_tools_and_one_name_may_stand_for_several():
    def plain(text: str) -> str:
        return text

    by_hand = Tool(name="by_hand", call=lambda context, arguments: "x")
    agent = ChatModelAgent(
        name="mine",
        model=MODEL,
        tools=(plain, by_hand),
        return_directly="plain",
        model_settings=ModelSettings(),
    )
    assert [one.name for one in agent.tools] == ["plain", "by_hand"]
    assert agent.return_directly == {"plain"}


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (
            lambda: ChatModelAgent(name="A", model=MODEL, instructionz="x"),
            r"ChatModelAgent\(\).*'instructionz'. Did you mean 'instruction'\?",
        ),
        (lambda: ChatModelAgent(name="A", model=MODEL, histroy="lane"), "Did you mean 'history'"),
        (
            lambda: Sequential(name="A", sub_agents=[other], max_iterations=3),
            r"Sequential\(\).*'max_iterations'. It takes: name, description, sub_agents, disallow",
        ),
        (
            lambda: Loop(name="A", sub_agents=[other], max_iteration=3),
            "Did you mean 'max_iterations'",
        ),
        (
            lambda: Parallel(name="A", sub_agents=[other], max_concurency=3),
            "Did you mean 'max_concurrency'",
        ),
    ],
)
def test_a_misspelt_option_says_which_one_is_meant(make, said):
    with pytest.raises(TypeError, match=said):
        make()
