"""What the tests of the text on handoffs share: both libraries that its programs run with, and a
provider that calls the tools that it is told to.
"""

import ast
import inspect
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

import agents
import pytest
from pydantic import BaseModel

import offbook
from offbook.actors.handoffs.items import HandoffInputData
from offbook.runtime import RunContext
from tests.programs import openai_wire as wire

SNIPPETS = Path(__file__).parents[2] / "fixtures" / "handoff_snippets"
PYTHON = {"Any": Any, "Literal": Literal, "BaseModel": BaseModel, "dataclass": dataclass}


class _NativeAgent(offbook.ChatModelAgent):
    """A native agent by the parameters of the text."""

    def __class_getitem__(cls, _item):
        return cls

    def __init__(self, *, name, handoff_description="", **options):
        super().__init__(name=name, description=handoff_description, **options)

    def clone(self, **changes):
        return self.with_options(
            **{name: value for name, value in changes.items() if name != "name"}
        )


class _NativeHandoff(offbook.Handoff):
    def __class_getitem__(cls, _item):
        return cls


class Native:
    """The text's programs with native agents: `offbook.handoff`."""

    Agent = _NativeAgent
    names: ClassVar = {
        "Agent": _NativeAgent,
        "Handoff": _NativeHandoff,
        "HandoffInputData": HandoffInputData,
        "RunContextWrapper": RunContext,
        "handoff": offbook.handoff,
    }
    tool = staticmethod(offbook.tool)
    handoff = staticmethod(offbook.handoff)

    @staticmethod
    async def run(agent, text, *, context=None, session_values=None):
        messages = (
            [offbook.Message(item["role"], item["content"]) for item in text]
            if isinstance(text, list)
            else text
        )
        result = await offbook.Runner(agent).run(
            messages, context=context, session_values=session_values
        )
        result.raise_for_error()
        return Result(result.last_agent, result.text, result.session_values)


class Sdk:
    """The same, run by the SDK itself."""

    Agent = agents.Agent
    names: ClassVar = {
        name: getattr(agents, name)
        for name in ("Agent", "Handoff", "HandoffInputData", "RunContextWrapper", "handoff")
    }
    tool = staticmethod(agents.function_tool)
    handoff = staticmethod(agents.handoff)

    @staticmethod
    async def run(agent, text, *, context=None, session_values=None):
        assert session_values is None
        result = await agents.Runner.run(agent, text, context=context)
        return Result(result.last_agent.name, result.final_output, {})


@dataclass
class Result:
    last_agent: str
    final_output: str
    session_values: dict[str, Any]


LIBRARIES = pytest.mark.parametrize("library", [Native, Sdk], ids=["native", "sdk"])
"""For what the text says in a way that both understand."""

FAILS_IN_THE_SDK = {
    "tool_description": (
        TypeError,
        "the text says tool_description=, and the SDK has tool_description_override=",
    ),
    "mapping": (
        (TypeError, AttributeError, AssertionError),
        "the text takes items for mappings, and those of the SDK are objects",
    ),
    "context": (
        (AttributeError, AssertionError),
        "the text has context.set() and get(), and the SDK's context has neither",
    ),
}
"""What the text says and the SDK itself refuses. It works with native agents."""


def libraries(why):
    """For the rest: the native form works, and the SDK's fails as it did when this was written."""
    raises, reason = FAILS_IN_THE_SDK[why]
    refused = pytest.param(
        Sdk, id="sdk", marks=pytest.mark.xfail(raises=raises, reason=reason, strict=True)
    )
    return pytest.mark.parametrize("library", [pytest.param(Native, id="native"), refused])


class Provider:
    """Answers each agent: it calls the handoffs that it is to call, one after the other, and then
    says who it is. Keeps what it was asked.
    """

    def __init__(self) -> None:
        self.calls: list[list[tuple[str, Any]]] = []
        self.asked: list[dict[str, Any]] = []

    def wants(self, *calls):
        """The tools that are to be called, each when it is next on offer; those in a list at
        once.
        """
        replies = [call if isinstance(call, list) else [call] for call in calls]
        self.calls = [
            [(call, {}) if isinstance(call, str) else call for call in reply] for reply in replies
        ]
        self.asked.clear()

    async def answer(self, one):
        body = one.seen.body
        self.asked.append(body)
        offered = [tool["function"]["name"] for tool in body.get("tools", ())]
        if self.calls and self.calls[0][0][0] in offered:
            made = [
                wire.call(name, json.dumps(arguments), f"call_{len(self.asked)}_{number}")
                for number, (name, arguments) in enumerate(self.calls.pop(0))
            ]
            said = wire.completion(None, calls=made)
        else:
            said = wire.completion("done")
        await one.answer(said, connection="close")

    @property
    def given(self):
        """What the last one that was asked was given, but for its instructions."""
        return [
            (message["role"], message.get("content"))
            for message in self.asked[-1]["messages"]
            if message["role"] != "system"
        ]

    @property
    def offered(self):
        """The tools that the first one was offered."""
        return [tool["function"]["name"] for tool in self.asked[0].get("tools", ())]


def play(story, run, monkeypatch):
    """Play it, with a provider; the environment has nothing but a key and an address."""

    async def main():
        provider = Provider()
        agents.set_default_openai_api("chat_completions")
        agents.set_tracing_disabled(True)
        async with wire.WireServer(provider.answer) as server:
            for name in ("ARK_CHAT_MODEL", "MODEL_TYPE"):
                monkeypatch.delenv(name, raising=False)
            monkeypatch.setenv("OPENAI_API_KEY", "a key")
            monkeypatch.setenv("OPENAI_MODEL", "a-model")
            monkeypatch.setenv("OPENAI_BASE_URL", server.url)
            await story(provider)

    run(main())


async def load(library, name, **given):
    """Run a snippet as it stands, and return what it has defined.

    `given` are names that the text leaves out.
    """
    names = {
        "__name__": f"seed_{name}",
        **library.names,
        "Runner": library,
        "run": library.run,
        **PYTHON,
        **given,
    }
    text = (SNIPPETS / f"{name}.py").read_text()
    if library is Native:
        text = re.sub(r"^from agents import .*$", "", text, flags=re.MULTILINE)
    code = compile(text, name, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    made = eval(code, names)
    if inspect.isawaitable(made):
        await made
    return names


def some_agents(library, *names):
    return {name: library.Agent(name=name, instructions=f"You are {name}.") for name in names}


async def handed_off(
    library, handoff, provider, arguments=None, context=None, name=None, **options
):
    """Run an agent that has that handoff alone, and return the result.

    Whoever took over has answered.
    """
    provider.wants((handoff.tool_name, arguments or {}))
    triage = library.Agent(name="triage", instructions="Hand off.", handoffs=[handoff])
    result = await library.run(triage, "help", context=context, **options)
    assert result.last_agent == (name or handoff.agent_name)
    assert result.final_output == "done"
    return result
