"""What the tests of the text on handoffs share: a provider that calls the tools that it is told to, and the loading of snippets."""

import ast
import inspect
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel

from tests.programs import openai_wire as wire
from understudy.actors import agents_sdk as sdk

SNIPPETS = Path(__file__).parents[2] / "fixtures" / "handoff_snippets"
GIVEN = {
    name: getattr(sdk, name)
    for name in ("Agent", "Handoff", "HandoffInputData", "RunContextWrapper", "Runner", "handoff", "run")
}  # fmt: skip
PYTHON = {"Any": Any, "Literal": Literal, "BaseModel": BaseModel, "dataclass": dataclass}


class Provider:
    """Answers each agent: it calls the handoffs that it is to call, one after the other, and then says who it is. Keeps what it was asked."""

    def __init__(self) -> None:
        self.calls: list[list[tuple[str, Any]]] = []
        self.asked: list[dict[str, Any]] = []

    def wants(self, *calls):
        """The tools that are to be called, each when it is next on offer; those in a list at once."""
        replies = [call if isinstance(call, list) else [call] for call in calls]
        self.calls = [[(call, {}) if isinstance(call, str) else call for call in reply] for reply in replies]
        self.asked.clear()

    async def answer(self, one):
        body = one.seen.body
        self.asked.append(body)
        offered = [tool["function"]["name"] for tool in body.get("tools", ())]
        if self.calls and self.calls[0][0][0] in offered:
            made = [wire.call(name, json.dumps(arguments), f"call_{len(self.asked)}_{number}") for number, (name, arguments) in enumerate(self.calls.pop(0))]
            said = wire.completion(None, calls=made)
        else:
            said = wire.completion("done")
        await one.answer(said, connection="close")

    @property
    def given(self):
        """What the last one that was asked was given, but for its instructions."""
        return [(message["role"], message.get("content")) for message in self.asked[-1]["messages"] if message["role"] != "system"]

    @property
    def offered(self):
        """The tools that the first one was offered."""
        return [tool["function"]["name"] for tool in self.asked[0].get("tools", ())]


def play(story, run, monkeypatch):
    """Play it, with a provider; the environment has nothing but a key and an address."""

    async def main():
        provider = Provider()
        async with wire.WireServer(provider.answer) as server:
            for name in ("OPENAI_MODEL", "ARK_CHAT_MODEL", "MODEL_TYPE"):
                monkeypatch.delenv(name, raising=False)
            monkeypatch.setenv("OPENAI_API_KEY", "a key")
            monkeypatch.setenv("OPENAI_BASE_URL", server.url)
            await story(provider)

    run(main())


async def load(name, **given):
    """Run a snippet as it stands, and return what it has defined. `given` are names that the text leaves out."""
    names = {"__name__": f"seed_{name}", **GIVEN, **PYTHON, **given}
    code = compile((SNIPPETS / f"{name}.py").read_text(), name, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    made = eval(code, names)
    if inspect.isawaitable(made):
        await made
    return names


def agents(*names):
    return {name: sdk.Agent(name=name, instructions=f"You are {name}.") for name in names}


async def handed_over(handoff, provider, arguments=None, context=None, name=None, **options):
    """Run an agent that has that handoff alone, and return the result. Whoever took over has answered."""
    provider.wants((handoff.tool_name, arguments or {}))
    triage = sdk.Agent(name="triage", instructions="Hand over.", handoffs=[handoff])
    result = await sdk.Runner.run(triage, "help", context=context, **options)
    assert result.last_agent.name == (name or handoff.agent_name)
    assert result.final_output == "done"
    return result
