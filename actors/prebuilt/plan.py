"""The session values that the roles of a plan exchange.

They are `UserInput`, `Plan`, `ExecutedStep` and `ExecutedSteps`. A step is recorded once, wherever
the run resumes.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...runtime.agent.context import AgentContext, door_of
from ...runtime.agent.session_values import SessionValues
from ...runtime.errors import UsageError

__all__ = ["note_step", "situation", "task"]


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
        msg = f"agent {name!r} has no plan to carry out: it belongs into a PlanExecute."
        raise UsageError(msg, run=run_id, agent=name)
    return f"{situation(session)}\n\nYOUR TASK is the first step of the plan:\n{plan[0]}"


def note_step(context: AgentContext, last_iteration: int | None) -> None:
    """Record that the first step of the plan is done, unless that was recorded before a restart."""
    session, state, iteration = (
        context.session,
        context.state,
        door_of(context).invocation.assignment.loop,
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
