"""A session in a cluster: a lasting conversation, on the host that its id belongs to.

The client stores nothing of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Unpack

from ...codec.packing import pack
from ...data.chat import Message, new_id
from ...durability.leases import Busy
from ...errors import UsageError
from ...session import check_busy, check_session_id, check_start
from ...sessions.session_policy import SessionPolicyLike
from ...sessions.turn import Start
from ..run_form import pack_run, packed_policy
from .line import Entry, ask
from .run import ClusterRun

if TYPE_CHECKING:
    from ...run.run_options import TurnOptions
    from .routes import Routes

__all__ = ["ClusterSession", "placed"]


class ClusterSession:
    """One conversation. Messages from one client are handled in the order sent."""

    __slots__ = ("_how", "_routes", "id")

    def __init__(
        self,
        routes: Routes,
        session_id: str,
        busy: Busy,
        policy: SessionPolicyLike | str,
        start: Start,
    ) -> None:
        check_session_id(session_id)
        check_busy(busy)
        check_start(start)
        self.id = session_id
        self._routes = routes
        self._how = {
            "id": session_id,
            "busy": busy,
            "policy": packed_policy(policy),
            "start": start,
        }

    def __repr__(self) -> str:
        return f"<ClusterSession {self.id!r}>"

    def query(self, text: str, **run_options: Unpack[TurnOptions]) -> ClusterRun:
        """Send one user message."""
        if not isinstance(text, str):
            msg = f"query: text must be a string, got {text!r}. Pass messages to run([...])."
            raise UsageError(msg)
        return self.run((Message("user", text),), **run_options)

    def run(
        self, messages: str | Message | Sequence[Message], **run_options: Unpack[TurnOptions]
    ) -> ClusterRun:
        """Send messages. The run receives the earlier conversation."""
        run_id = run_options.setdefault("run_id", None) or new_id()
        run_options["run_id"] = run_id
        body = pack_run("session.run", messages, run_options, self._how)
        return ClusterRun(
            self._routes,
            "run",
            self.id,
            run_id,
            body,
            run_options.get("checkpoint_id") or run_id,
            in_order=self._how["busy"] == "queue",
        )

    async def history(self) -> tuple[Message, ...]:
        """Return the whole conversation, oldest message first."""
        return tuple(await placed(self._routes, "history", self.id, [self.id]))

    async def values(self) -> dict[str, Any]:
        """Return the session values after the last turn."""
        return dict(await placed(self._routes, "values", self.id, [self.id]))

    async def clear(self) -> None:
        """Delete the conversation and the values."""
        await placed(self._routes, "clear", self.id, [self.id])


async def placed(routes: Routes, kind: str, key: str, said: object) -> Any:
    """Send an idempotent request to the host of a key."""
    return await ask(routes, key, Entry(kind, pack(said), f"{kind} of {key!r}"), in_order=False)
