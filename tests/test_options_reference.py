"""docs/reference/options.md: each option of the public classes and functions is in it, in its order
and with its default.
"""

import inspect
import re
from pathlib import Path
from typing import get_type_hints

import pytest

import offbook.actors
import offbook.runtime
from offbook.actors import tool
from offbook.actors.agent import AgentOptions
from offbook.actors.chat_agent.chat_model_agent import GenerateOptions
from offbook.runtime import Backoff, Runner, Session
from offbook.runtime.models.protocol import SettingsFields
from offbook.runtime.run.run_options import RunOptions, SearchOptions, TurnOptions

TEXT = (Path(__file__).parents[1] / "docs" / "reference" / "options.md").read_text()
SECTIONS = dict(re.findall(r"^## `([\w.]+)`\n(.*?)(?=^## |\Z)", TEXT, re.MULTILINE | re.DOTALL))
ROW = re.compile(r"^\| `(\w+)` \| (.+?) \| (.+) \|$", re.MULTILINE)
CLASSES = [
    *(
        "ActorSystem",
        "Runner",
        "MailboxSettings",
        "Restart",
        "Backoff",
        "RetryModel",
        "FailoverModel",
        "LimitedModel",
        "ScriptedModel",
    ),
    *(
        "OpenAIChatModel",
        "OpenAIResponsesModel",
        "MemoryStore",
        "SQLiteStore",
        "RedisStore",
        "PostgresStore",
    ),
    *(
        "Agent",
        "ChatModelAgent",
        "Sequential",
        "Loop",
        "Parallel",
        "Supervisor",
        "PlanExecute",
        "DeterministicTransfer",
    ),
]
METHODS = [
    "Runner.run",
    "Runner.resume",
    "Runner.session",
    "Runner.attending",
    "Runner.schedule",
    "Session.post",
    "Runner.recover",
    "Runner.attach",
    "Runner.runs",
    "Runner.map",
    "ActorSystem.spawn",
    "ActorSystem.spawn_pool",
]
FUNCTIONS = [
    "service",
    "tool",
    "encrypted",
    "handoff",
    "make_planner",
    "make_executor",
    "make_replanner",
]
PACKED = {
    "agent_options": "Agent",
    "settings": "ModelSettings",
    "options": "ChatModelAgent",
    "run_options": "Runnerrun",
    "runner_options": "Runner",
}  # taken by `**`: where they are documented
NOT_OPTIONS = {"self", "cls", "args", "kwargs"}


def public(path):
    found = offbook.runtime
    first, *others = path.split(".")
    found = getattr(offbook.runtime if hasattr(offbook.runtime, first) else offbook.actors, first)
    for name in others:
        found = getattr(found, name)
    return found


def said(default):
    """A default as the reference writes it."""
    if default is inspect.Parameter.empty:
        return "required"
    if isinstance(default, Backoff) or callable(default):
        return "its own"
    if isinstance(default, str) and len(default) > 40:
        return "its own"
    return f"`{default!r}`" if not (isinstance(default, int) and default == 0o600) else "`0o600`"


def options_of(path):
    if path == "tool":
        hints = get_type_hints(tool.__globals__["_Settings"])
        return [(name, None) for name in ("name", "description", *hints)]
    if path == "ModelSettings":
        return [(name, None) for name in SettingsFields.__annotations__]
    target = public(path)
    parameters = inspect.signature(
        target.__init__ if inspect.isclass(target) else target
    ).parameters.values()
    named = [
        one
        for one in parameters
        if one.name not in NOT_OPTIONS and one.kind is not inspect.Parameter.VAR_KEYWORD
    ]
    return [(one.name, said(one.default)) for one in named]


@pytest.mark.parametrize("path", [*CLASSES, *METHODS, *FUNCTIONS, "ModelSettings"])
def test_the_reference_has_each_option_with_its_default(path):
    rows = ROW.findall(SECTIONS[path])
    expected = options_of(path)
    assert [name for name, _, _ in rows] == [name for name, _ in expected]
    for (name, default, meaning), (_, known) in zip(rows, expected, strict=True):
        if known is not None and known != "its own" and not known.startswith("`<"):
            assert default == known, name
        assert len(meaning.split()) >= 3, name


def test_the_reference_has_nothing_that_is_not_there():
    assert set(SECTIONS) == {*CLASSES, *METHODS, *FUNCTIONS, "ModelSettings"}


@pytest.mark.parametrize("path", [*CLASSES, *METHODS, *FUNCTIONS])
def test_what_is_taken_by_two_stars_is_documented_in_its_place(path):
    target = public(path)
    parameters = inspect.signature(
        target.__init__ if inspect.isclass(target) else target
    ).parameters.values()
    for one in parameters:
        if (
            one.kind is inspect.Parameter.VAR_KEYWORD
            and one.name not in NOT_OPTIONS
            and path != "tool"
        ):
            assert f"(#{PACKED[one.name].lower()})" in SECTIONS[path]


def keywords(method):
    return {
        one.name
        for one in inspect.signature(method).parameters.values()
        if one.kind is inspect.Parameter.KEYWORD_ONLY
    }


def test_what_passes_options_on_knows_all_of_them():
    """Completion and type checkers see what `Runner.run` takes, wherever it is called by another
    name.
    """
    assert set(RunOptions.__annotations__) == keywords(Runner.run)
    assert set(TurnOptions.__annotations__) == keywords(Runner.run) - {"session_id"}
    assert set(SearchOptions.__annotations__) == keywords(Runner.recover)
    assert set(GenerateOptions.__annotations__) >= keywords(Runner.run)
    assert set(AgentOptions.__annotations__) == keywords(offbook.actors.Agent.__init__) - {
        "name",
        "description",
        "sub_agents",
    }


@pytest.mark.parametrize(
    ("method", "options"),
    [(Runner.query, RunOptions), (Session.query, TurnOptions), (Session.run, TurnOptions)],
)
def test_the_methods_that_take_options_say_which(method, options):
    assert options.__name__ in str(inspect.signature(method))
