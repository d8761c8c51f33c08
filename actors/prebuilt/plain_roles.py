"""The roles of a plan, played by agents that were not made for them: plain `ChatModelAgent`s.

Owns: what each of them is given (the objective, the plan, what was done), and how a plan, a result or an answer is read from what it says. Each stands in
front of its agent and bears its name. It must never ask a model itself.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from typing import Final

from ...runtime.agent.context import AgentContext, door_of
from ...runtime.agent.tree import INNER
from ...runtime.data.agent_input import AgentInput
from ...runtime.data.chat import Message
from ...runtime.data.events import AgentEvent, BreakLoop
from ...runtime.data.outcome import Outcome
from ...runtime.errors import ModelBehaviorError
from ..agent import Agent
from ..chat_agent.chat_model_agent import ChatModelAgent
from .plan import note_step, situation, task

__all__ = ["PlainExecutor", "PlainPlanner", "PlainReplanner", "read_answer", "read_steps"]

_ANSWER: Final = """If the objective has been reached, answer with JSON of this form: {"response": "the complete answer"}
Otherwise answer with the steps that are still to be done, and only those: {"steps": ["the next step", "the one after it"]}"""
_LAST: Final = "There is no time for further steps: give the best answer that these results allow."

_FENCED: Final = re.compile(r"```[a-zA-Z]*\s*\n(.*?)```", re.DOTALL)
_LISTED: Final = re.compile(r"(\s*)(?:[-*+•]|(?:step|步骤|第)?\s*\d+\s*步?\s*[.):\u3001\uff1a])\s*(\S.*)", re.IGNORECASE)
_PLANS: Final = ("steps", "plan", "response")
"""Where an object has a plan; the last is what an `output_type` is put in that is a list."""

_TEXTS: Final = ("step", "description", "task", "title", "name")
"""Where a step that is an object has its text."""


class _PlainRole(Agent):
    """One that stands in front of an agent, and has it play."""

    def __init__(self, agent: ChatModelAgent) -> None:
        super().__init__(name=agent.name, description=agent.description, history="input_only")
        self.wrapped = agent

    async def _play(self, context: AgentContext, given: AgentInput | None) -> Outcome:
        door = door_of(context)
        inner = door.node.inner
        assert inner is not None  # `wrapped` is set
        invocation = door.invocation
        outcome = await door.cast_node(inner, invocation.run_path, invocation.lane, INNER, input=given)
        invocation.broke = invocation.broke or outcome.broke
        return outcome

    def _nothing_in(self, outcome: Outcome, wanted: str, context: AgentContext) -> ModelBehaviorError:
        said = "" if outcome.message is None else outcome.message.text
        msg = f"agent {self.name!r}: there is no {wanted} in what its model has answered: {said!r}."
        return ModelBehaviorError(msg, run=context.run_id, agent=self.name, message=outcome.message)


class PlainPlanner(_PlainRole):
    async def run(self, input: AgentInput, context: AgentContext) -> AsyncIterator[AgentEvent]:  # noqa: A002 -- the contract's
        context.session.update(UserInput=list(input.messages), ExecutedSteps=[])
        outcome = await self._play(context, None)
        if not outcome.finished:
            return
        steps = read_steps("" if outcome.message is None else outcome.message.text)
        if not steps:
            raise self._nothing_in(outcome, "plan", context)
        context.session["Plan"] = steps
        return
        yield


class PlainExecutor(_PlainRole):
    async def run(self, input: AgentInput, context: AgentContext) -> AsyncIterator[AgentEvent]:  # noqa: A002 -- the contract's
        outcome = await self._play(context, AgentInput((Message.user(task(context.session, context.run_id, self.name)),), input.streaming))
        if outcome.finished:
            context.session["ExecutedStep"] = "" if outcome.message is None else outcome.message.text
        return
        yield


class PlainReplanner(_PlainRole):
    def __init__(self, agent: ChatModelAgent, last_iteration: int) -> None:
        super().__init__(agent)
        self.last_iteration = last_iteration

    async def run(self, input: AgentInput, context: AgentContext) -> AsyncIterator[AgentEvent]:  # noqa: A002 -- the contract's
        note_step(context, self.last_iteration)
        door = door_of(context)
        last = door.invocation.assignment.loop == self.last_iteration
        asked = f"{situation(context.session)}\n\n{_LAST if last else _ANSWER}"
        outcome = await self._play(context, AgentInput((Message.user(asked),), input.streaming))
        if not outcome.finished or door.invocation.broke:
            return  # it has broken the loop itself, or has done so before the run went on from here
        text = "" if outcome.message is None else outcome.message.text
        answer, steps = read_answer(text)
        if answer is not None:
            yield AgentEvent.of(Message.assistant(answer) if answer != text else None, BreakLoop())
        elif last or not steps:
            raise self._nothing_in(outcome, "answer" if last else "answer and no plan", context)
        else:
            context.session["Plan"] = steps


def read_steps(text: str) -> list[str]:
    """The steps of a plan: of JSON, of the lines that are a list, or all lines."""
    found = _json_in(text)
    steps = next((found[name] for name in _PLANS if name in found), None) if isinstance(found, dict) else found
    if found is not None:
        return [step for one in steps if (step := _step(one))] if isinstance(steps, list) else []
    return _list_in(text) or [line.strip() for line in text.splitlines() if line.strip() and not line.lstrip().startswith(("#", "```"))]


def read_answer(text: str) -> tuple[str | None, list[str]]:
    """The answer to the objective; or, if that is not reached, the steps that are left: those of JSON, or a text that is nothing but a list."""
    found = _json_in(text)
    answer = found.get("response") if isinstance(found, dict) else None
    if isinstance(answer, str):
        return answer, []
    if found is not None and (isinstance(found, list) or any(name in found for name in _PLANS)):
        return None, read_steps(text)
    lines = [line for line in text.splitlines() if line.strip()]
    if lines and all(_LISTED.fullmatch(line) for line in lines):
        return None, _list_in(text)
    return (text or None), []


def _json_in(text: str) -> dict[str, object] | list[object] | None:
    fenced = _FENCED.search(text)
    for candidate in (text, *((fenced.group(1),) if fenced is not None else ())):
        try:
            found = json.loads(candidate)
        except ValueError:
            continue
        if isinstance(found, dict | list):
            return found
    return None


def _list_in(text: str) -> list[str]:
    """The items of the list in a text, without those of the lists in it."""
    found = [match for line in text.splitlines() if (match := _LISTED.fullmatch(line))]
    outermost = min((len(match.group(1)) for match in found), default=0)
    return [match.group(2).strip() for match in found if len(match.group(1)) == outermost]


def _step(given: object) -> str:
    if isinstance(given, dict):
        given = next((given[name] for name in _TEXTS if isinstance(given.get(name), str)), json.dumps(given, ensure_ascii=False))
    return given.strip() if isinstance(given, str) else ""
