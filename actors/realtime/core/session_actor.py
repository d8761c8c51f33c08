"""The actor of a session.

Its mailbox orders the reports, with control messages first. The actor never waits: slow work runs
in child tasks, which report.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ....runtime.actor.actor import Actor
from ....runtime.actor.cell import Cell
from ....runtime.actor.direct import send_now
from ....runtime.actor.loop_cell import LoopCell
from ....runtime.actor.ref import cell_of
from ....runtime.errors import AgentError, text_of

__all__ = ["Report", "SessionActor", "deliver_report"]


class Report:
    """A function for the actor to call, with its arguments."""

    __slots__ = ("args", "what")

    def __init__(self, what: Callable[..., object], args: tuple[Any, ...]) -> None:
        self.what = what
        self.args = args


class SessionActor(Actor):
    """One session. Its state is the core, which changes only through a `Report`."""

    def __init__(self, core: Any) -> None:
        super().__init__()
        self.core = core

    def on_receive(self, message: object) -> object:
        if not isinstance(message, Report):
            return None
        core = self.core
        try:
            result = message.what(*message.args)
            core.lifecycle.settle()
        except Exception as error:  # noqa: BLE001 -- it ends this session, and no other
            wrapped = AgentError(
                f"the realtime session has failed and was closed: {type(error).__name__}: "
                f"{text_of(error)}",
                agent=core.agent_name,
            )
            wrapped.__cause__ = error
            core.lifecycle.fatal(error if core.is_known(error) else wrapped)
            return None
        return result

    def on_failure(self, exception_type: Any, exception_value: Any, traceback: Any) -> None:
        del exception_type, traceback
        self.core.lifecycle.fatal(
            AgentError(
                f"the realtime session crashed and was closed: {type(exception_value).__name__}. "
                "The log has the traceback",
                agent=self.core.agent_name,
            )
        )

    def on_drain(self, timeout: float) -> None:
        """Let the current response and calls end, then close.

        The child is busy until then, so the system waits.
        """
        del timeout
        self.spawn(_Drainer).tell(self.core)

    async def on_stop(self) -> None:  # type: ignore[override]  # a hook may be a coroutine
        """Close the session in an orderly way when the system ends it."""
        self.core.lifecycle.finish(None)
        await self.core.lifecycle.closed


class _Drainer(Actor):
    """Stays busy until a session has closed."""

    async def on_receive(self, message: Any) -> None:
        await message.lifecycle.drain()


def deliver_report(ref: Any, report: Report) -> bool:
    """Deliver a report, at once if the actor is idle.

    Returns False if the session accepts no more messages.
    """
    cell: Cell = cell_of(ref)
    if not isinstance(cell, LoopCell) or not cell.is_open:
        return False
    send_now(cell, report)
    return True
