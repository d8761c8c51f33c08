"""The Runner of a cluster: runs start on the host that their id belongs to.

Agents are known only to the factory on each host, not to a client.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Unpack

from ...agent.options import OptionsLike
from ...codec.packing import pack
from ...data.chat import Message, new_id
from ...data.checkpoint_id import checkpoint_of
from ...data.interrupt import InterruptContext
from ...durability.checkpoint import check_checkpoint_id
from ...errors import UsageError
from ..run_form import pack_resume, pack_run, pack_verdict
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
        """Run with one user message.

        The options are those of `Runner.run`. Their values must be of types that the codec
        supports.
        """
        if not isinstance(text, str):
            msg = f"query: text must be a string, got {text!r}. Pass messages to run([...])."
            raise UsageError(msg)
        return self.run((Message("user", text),), **options)

    def run(
        self, messages: str | Message | Sequence[Message], **options: Unpack[RunOptions]
    ) -> ClusterRun:
        """Run with these messages.

        If the `run_id` was used before, that run is followed, or its result returned, whatever was
        lost meanwhile.
        """
        run_id = options.get("run_id")
        run_id = new_id() if run_id is None else check_checkpoint_id(run_id, "run_id")
        options["run_id"] = run_id
        body = pack_run("run", messages, options)
        return ClusterRun(
            self._routes, "run", run_id, run_id, body, options.get("checkpoint_id") or run_id
        )

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
        answer_id: str | None = None,
    ) -> ClusterRun:
        """Continue a run that was interrupted or cancelled, as `Runner.resume` does.

        The answer is applied once, whichever hosts are lost meanwhile.
        """
        if not isinstance(checkpoint_id, str) or not checkpoint_id:
            msg = (
                "resume: checkpoint_id must be the id of a checkpoint, as in "
                f"`run.checkpoint_id`, got {checkpoint_id!r}."
            )
            raise UsageError(msg)
        given: dict[str, Any] = {
            "session_values": session_values,
            "options": options,
            "streaming": streaming,
            "timeout": timeout,
            "context": context,
        }
        given["answer_id"] = answer_id
        body = pack_resume("resume", checkpoint_id, targets, data, tool_options, given)
        return ClusterRun(
            self._routes,
            "resume",
            checkpoint_id,
            checkpoint_id.partition("@")[0],
            body,
            checkpoint_id,
        )

    def approve(
        self,
        interrupt: InterruptContext | str,
        arguments: str | Mapping[str, object] | None = None,
        *,
        answer_id: str | None = None,
    ) -> ClusterRun:
        """Approve one call, as shown or with these `arguments`, and continue its run.

        It corresponds to `Runner.approve`.
        """
        return self._verdict("approve", interrupt, arguments, answer_id, approves=True)

    def deny(
        self, interrupt: InterruptContext | str, reason: str = "", *, answer_id: str | None = None
    ) -> ClusterRun:
        """Deny one call, and continue its run. The model receives the `reason`.

        It corresponds to `Runner.deny`.
        """
        return self._verdict("deny", interrupt, reason, answer_id, approves=False)

    def _verdict(
        self,
        call: str,
        interrupt: InterruptContext | str,
        answer: object,
        answer_id: str | None,
        *,
        approves: bool,
    ) -> ClusterRun:
        interrupt_id = interrupt.id if isinstance(interrupt, InterruptContext) else interrupt
        checkpoint_id = checkpoint_of(interrupt_id) if isinstance(interrupt_id, str) else None
        if checkpoint_id is None:
            msg = (
                f"{call}({interrupt!r:.80}): interrupt must be an InterruptContext or its id. Pass "
                "one of result.interrupts."
            )
            raise UsageError(msg)
        body = pack_verdict(call, interrupt, answer, answer_id, approves=approves)
        return ClusterRun(
            self._routes,
            "resume",
            checkpoint_id,
            checkpoint_id.partition("@")[0],
            body,
            checkpoint_id,
        )

    def follow(self, run_id: str, *, after: int = 0) -> ClusterRun:
        """Follow a run from any client: its next events after number `after`, or its result."""
        check_checkpoint_id(run_id, "run_id")
        return ClusterRun(
            self._routes, "follow", run_id, run_id, pack({"run_id": run_id, "after": after}), run_id
        )
