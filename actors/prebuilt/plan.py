"""The session values by which the roles of a plan work together: `UserInput`, `Plan`, `ExecutedStep`, `ExecutedSteps`.

Owns: how a role is told of them, and that a step is noted once, wherever the run goes on from.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...runtime.agent.context import AgentContext, door_of
from ...runtime.agent.session_values import SessionValues
from ...runtime.errors import UsageError

__all__ = ["note_step", "situation", "task"]


def situation(session: SessionValues) -> str:
    """The objective, the plan, and what was done."""
    objective = "\n".join(message.text for message in session.get("UserInput", ()))
    done = "\n\n".join(f"Step: {one['step']}\nResult: {one['result']}" for one in session.get("ExecutedSteps", []))
    return f"OBJECTIVE:\n{objective}\n\nPLAN:\n{_steps(session.get('Plan', []))}\n\nSTEPS DONE, WITH THEIR RESULTS:\n{done or '(none)'}"


def _steps(items: Sequence[str]) -> str:
    return "\n".join(f"{number}. {item}" for number, item in enumerate(items, start=1)) or "(none)"


def task(session: SessionValues, run_id: str, name: str) -> str:
    """What an executor is asked: the first step of the plan. Raises, if there is none."""
    plan = session.get("Plan", [])
    if not plan:
        msg = f"agent {name!r} has no plan to carry out: it belongs into a PlanExecute."
        raise UsageError(msg, run=run_id, agent=name)
    return f"{situation(session)}\n\nYOUR TASK is the first step of the plan:\n{plan[0]}"


def note_step(context: AgentContext, last_iteration: int | None) -> None:
    """The first step of the plan is done: note it, if that was not noted before the run went on from here."""
    session, state, iteration = context.session, context.state, door_of(context).invocation.assignment.loop
    plan, done = session.get("Plan", []), session.get("ExecutedSteps", [])
    noted = "noted" in state if last_iteration is None or iteration is None else len(done) > iteration
    if plan and not noted:
        state["noted"] = True
        session["ExecutedSteps"] = [*done, {"step": plan[0], "result": session.get("ExecutedStep", "")}]
