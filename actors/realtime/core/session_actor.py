"""The actor that a session is.

Owns: its mailbox, and the order in which what is reported is dealt with: control before work. It must never wait: what takes time are children of the session,
and they report.
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
    """Something that has happened, and what is to be done about it."""

    __slots__ = ("args", "what")

    def __init__(self, what: Callable[..., object], args: tuple[Any, ...]) -> None:
        self.what = what
        self.args = args


class SessionActor(Actor):
    """One session. Its state is the core's; all that changes it comes as a `Report`."""

    def __init__(self, core: Any) -> None:
        super().__init__()
        self.core = core

    def on_receive(self, message: object) -> object:
        if not isinstance(message, Report):
            return None
        core = self.core
        try:
            result = message.what(*message.args)
            core.settle()
        except Exception as error:  # noqa: BLE001 -- it is the end of this session, and of no other
            wrapped = AgentError(f"the session has failed: {type(error).__name__}: {text_of(error)}", agent=core.agent_name)
            wrapped.__cause__ = error
            core.fatal(error if core.is_known(error) else wrapped)
            return None
        return result

    def on_failure(self, exception_type: Any, exception_value: Any, traceback: Any) -> None:
        del exception_type, traceback
        self.core.fatal(AgentError(f"the session has crashed: {type(exception_value).__name__}", agent=self.core.agent_name))

    def on_drain(self, timeout: float) -> None:
        """The system is left: let what is said and called end, then close. The child is busy for as long, so that the system waits."""
        del timeout
        self.spawn(_Drainer).tell(self.core)

    async def on_stop(self) -> None:  # type: ignore[override]  # a hook may be a coroutine
        """The system ends this one, if it has not ended itself: what is under way ends in good order."""
        self.core.finish(None)
        await self.core.closed


class _Drainer(Actor):
    """Is busy until a session has closed."""

    async def on_receive(self, message: Any) -> None:
        await message.drain()


def deliver_report(ref: Any, report: Report) -> None:
    """Have it dealt with: at once, if nothing else is."""
    cell: Cell = cell_of(ref)
    if isinstance(cell, LoopCell) and cell.mailbox.is_open:
        send_now(cell, report)
