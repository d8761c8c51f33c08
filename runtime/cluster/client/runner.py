"""The Runner of a cluster: runs that begin on the host to which their id belongs.

Owns: what users ask of it from a client. It must never know an agent: that is the factory's, on each host.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Unpack

from ...agent.options import OptionsLike
from ...codec.packing import pack
from ...data.chat import Message, new_id
from ...durability.checkpoint import check_checkpoint_id
from ...errors import UsageError
from ..run_form import pack_resume, pack_run
from .run import ClusterRun

if TYPE_CHECKING:
    from ...run.run_options import RunOptions
    from .routes import Routes

__all__ = ["ClusterRunner"]


class ClusterRunner:
    """Runs the agent of the cluster's factory."""

    __slots__ = ("_routes",)

    def __init__(self, routes: Routes) -> None:
        self._routes = routes

    def query(self, text: str, **options: Unpack[RunOptions]) -> ClusterRun:
        """Run with one user message. The options are those of `Runner.run`; what is given has to be of types that the codec knows."""
        if not isinstance(text, str):
            msg = f"query({text!r}): give a text; messages go to run([...])."
            raise UsageError(msg)
        return self.run((Message("user", text),), **options)

    def run(self, messages: str | Message | Sequence[Message], **options: Unpack[RunOptions]) -> ClusterRun:
        """Run with these messages. A `run_id` that was asked for before is followed, or its result returned, whatever was lost meanwhile."""
        run_id = options.get("run_id")
        run_id = new_id() if run_id is None else check_checkpoint_id(run_id, "run_id")
        options["run_id"] = run_id
        body = pack_run("run", messages, options)
        return ClusterRun(self._routes, "run", run_id, run_id, body, options.get("checkpoint_id") or run_id)

    def resume(
        self,
        checkpoint_id: str,
        targets: Mapping[str, object] | None = None,
        *,
        data: object = None,
        tool_options: OptionsLike = None,
        session_values: Mapping[str, object] | None = None,
        options: OptionsLike = None,
        streaming: bool | None = None,
        timeout: float | None = None,
        context: object = None,
    ) -> ClusterRun:
        """Go on with a run that was interrupted or cancelled, as `Runner.resume` does."""
        if not isinstance(checkpoint_id, str) or not checkpoint_id:
            msg = f"resume({checkpoint_id!r}): give the id of a checkpoint: that of `run.checkpoint_id`."
            raise UsageError(msg)
        given: dict[str, Any] = {"session_values": session_values, "options": options, "streaming": streaming, "timeout": timeout, "context": context}
        body = pack_resume("resume", checkpoint_id, targets, data, tool_options, given)
        return ClusterRun(self._routes, "resume", checkpoint_id, checkpoint_id.partition("@")[0], body, checkpoint_id)

    def follow(self, run_id: str, *, after: int = 0) -> ClusterRun:
        """Look on at a run, from any client: its next events, those behind number `after`, or its result."""
        check_checkpoint_id(run_id, "run_id")
        return ClusterRun(self._routes, "follow", run_id, run_id, pack({"run_id": run_id, "after": after}), run_id)
