"""The roles of a plan, performed by plain `ChatModelAgent`s.

Each role wraps its agent and has the same name. It passes the objective, the plan and the results
to the agent, and reads a plan, a result or an answer from its reply.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Sequence
from typing import Final

from ...runtime.agent.context import AgentContext, runtime_of
from ...runtime.agent.session_values import SessionValues
from ...runtime.agent.tree import INNER
from ...runtime.data.agent_input import AgentInput
from ...runtime.data.chat import Message
from ...runtime.data.events import AgentEvent, BreakLoop
from ...runtime.data.outcome import Outcome
from ...runtime.errors import ModelBehaviorError, UsageError
from ..agent import Agent
from ..chat_agent.chat_model_agent import ChatModelAgent

__all__ = [
    "PlainExecutor",
    "PlainPlanner",
    "PlainReplanner",
    "note_step",
    "read_answer",
    "read_steps",
    "situation",
    "task",
]


def situation(session: SessionValues) -> str:
    """Describe the objective, the plan, and the results so far."""
    objective = "\n".join(message.text for message in session.get("UserInput", ()))
    done = "\n\n".join(
        f"Step: {one['step']}\nResult: {one['result']}" for one in session.get("ExecutedSteps", [])
    )
    return (
        f"OBJECTIVE:\n{objective}\n\nPLAN:\n{_steps(session.get('Plan', []))}\n\nSTEPS DONE, "
        f"WITH THEIR RESULTS:\n{done or '(none)'}"
    )


def _steps(items: Sequence[str]) -> str:
    return "\n".join(f"{number}. {item}" for number, item in enumerate(items, start=1)) or "(none)"


def task(session: SessionValues, run_id: str, name: str) -> str:
    """Return the executor's request: the first step of the plan. Raise if there is none."""
    plan = session.get("Plan", [])
    if not plan:
        msg = (
            f"agent {name!r} has no plan to execute. Use it as an agent of a PlanExecute, which "
            "makes the plan."
        )
        raise UsageError(msg, run=run_id, agent=name)
    return f"{situation(session)}\n\nYOUR TASK is the first step of the plan:\n{plan[0]}"


def note_step(context: AgentContext, last_iteration: int | None) -> None:
    """Record that the first step of the plan is done, unless that was recorded before a restart."""
    session, state, iteration = (
        context.session,
        context.state,
        runtime_of(context).invocation.agent_call.loop,
    )
    plan, done = session.get("Plan", []), session.get("ExecutedSteps", [])
    noted = (
        "noted" in state if last_iteration is None or iteration is None else len(done) > iteration
    )
    if plan and not noted:
        state["noted"] = True
        session["ExecutedSteps"] = [
            *done,
            {"step": plan[0], "result": session.get("ExecutedStep", "")},
        ]


_ANSWER: Final = """\
If the objective has been reached, answer with JSON of this form: \
{"response": "the complete answer"}
Otherwise answer with the steps that are still to be done, and only those: \
{"steps": ["the next step", "the one after it"]}"""
_LAST: Final = "There is no time for further steps: give the best answer that these results allow."

_FENCE: Final = "```"
# All quantifiers are possessive, so that a model's text is matched in linear time.
_LISTED: Final = re.compile(
    r"(\s*+)(?:[-*+•]|(?:(?:step|步骤|第)\s*+)?\d++\s*+步?\s*+[.):\u3001\uff1a])\s*+(\S.*)",
    re.IGNORECASE,
)
_PLANS: Final = ("steps", "plan", "response")
"""The keys of a plan in an object. The last is the wrapper of an `output_type` that is a list."""

_TEXTS: Final = ("step", "description", "task", "title", "name")
"""The keys of the text of a step that is an object."""


class _PlainRole(Agent):
    """A role that wraps an agent and runs it."""

    def __init__(self, agent: ChatModelAgent) -> None:
        super().__init__(name=agent.name, description=agent.description, history="input_only")
        self.wrapped = agent

    async def _play(self, context: AgentContext, given: AgentInput | None) -> Outcome:
        runtime = runtime_of(context)
        inner = runtime.node.inner
        assert inner is not None  # `wrapped` is set
        invocation = runtime.invocation
        outcome = await runtime.cast_node(
            inner, invocation.run_path, invocation.lane, INNER, input=given
        )
        invocation.broke = invocation.broke or outcome.broke
        return outcome

    def _nothing_in(
        self, outcome: Outcome, wanted: str, context: AgentContext
    ) -> ModelBehaviorError:
        said = "" if outcome.message is None else outcome.message.text
        msg = f"agent {self.name!r}: the reply of its model must contain {wanted}, got {said!r}."
        return ModelBehaviorError(msg, run=context.run_id, agent=self.name, message=outcome.message)


class PlainPlanner(_PlainRole):
    async def run(self, input: AgentInput, context: AgentContext) -> AsyncIterator[AgentEvent]:  # noqa: A002 -- the documented name
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
    async def run(self, input: AgentInput, context: AgentContext) -> AsyncIterator[AgentEvent]:  # noqa: A002 -- the documented name
        outcome = await self._play(
            context,
            AgentInput(
                (Message.user(task(context.session, context.run_id, self.name)),), input.streaming
            ),
        )
        if outcome.finished:
            context.session["ExecutedStep"] = (
                "" if outcome.message is None else outcome.message.text
            )
        return
        yield


class PlainReplanner(_PlainRole):
    def __init__(self, agent: ChatModelAgent, last_iteration: int) -> None:
        super().__init__(agent)
        self.last_iteration = last_iteration

    async def run(self, input: AgentInput, context: AgentContext) -> AsyncIterator[AgentEvent]:  # noqa: A002 -- the documented name
        note_step(context, self.last_iteration)
        runtime = runtime_of(context)
        last = runtime.invocation.agent_call.loop == self.last_iteration
        asked = f"{situation(context.session)}\n\n{_LAST if last else _ANSWER}"
        outcome = await self._play(context, AgentInput((Message.user(asked),), input.streaming))
        if not outcome.finished or runtime.invocation.broke:
            return  # broke the loop itself, now or before the run was resumed
        text = "" if outcome.message is None else outcome.message.text
        answer, steps = read_answer(text)
        if answer is not None:
            yield AgentEvent.of(Message.assistant(answer) if answer != text else None, BreakLoop())
        elif last or not steps:
            raise self._nothing_in(outcome, "answer" if last else "answer and no plan", context)
        else:
            context.session["Plan"] = steps


def read_steps(text: str) -> list[str]:
    """Read the steps of a plan: from JSON, from the lines that form a list, or from all lines."""
    found = _json_in(text)
    steps = (
        next((found[name] for name in _PLANS if name in found), None)
        if isinstance(found, dict)
        else found
    )
    if found is not None:
        return [step for one in steps if (step := _step(one))] if isinstance(steps, list) else []
    return _list_in(text) or [
        line.strip()
        for line in text.splitlines()
        if line.strip() and not line.lstrip().startswith(("#", "```"))
    ]


def read_answer(text: str) -> tuple[str | None, list[str]]:
    """Return the answer to the objective, or the remaining steps if it is not reached.

    The steps are JSON, or a text that is a list and nothing else.
    """
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
    fenced = _fenced_in(text)
    for candidate in (text,) if fenced is None else (text, fenced):
        try:
            found = json.loads(candidate)
        except (ValueError, RecursionError):
            continue
        if isinstance(found, dict | list):
            return found
    return None


def _fenced_in(text: str) -> str | None:
    """Return the content of the first fenced block, which starts on the line after the fence."""
    begin = text.find(_FENCE)
    while (end := text.find(_FENCE, begin + len(_FENCE))) >= 0 <= begin:
        language, line_end, content = text[begin + len(_FENCE) : end].partition("\n")
        language = language.strip().lstrip("`")
        if line_end and (not language or language.isalpha()):
            return content
        begin = end
    return None


def _list_in(text: str) -> list[str]:
    """Return the items of the list in a text, without those of nested lists."""
    found = [match for line in text.splitlines() if (match := _LISTED.fullmatch(line))]
    outermost = min((len(match.group(1)) for match in found), default=0)
    return [match.group(2).strip() for match in found if len(match.group(1)) == outermost]


def _step(given: object) -> str:
    if isinstance(given, dict):
        given = next(
            (given[name] for name in _TEXTS if isinstance(given.get(name), str)),
            json.dumps(given, ensure_ascii=False),
        )
    return given.strip() if isinstance(given, str) else ""
