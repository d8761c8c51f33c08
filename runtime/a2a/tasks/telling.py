"""Conversion of an agent's events for an Agent2Agent client.

Outputs become artifacts, streamed text becomes chunks of them, and the values of `CustomAction`
become their equivalents. Internal steps are sent only to clients that have requested the extension.
The text of an exception is never shown.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from a2a.types import a2a_pb2 as pb

from ...data.chat import Message, new_id
from ...data.events import AgentEvent, CustomAction, TransferToAgent
from ..conversion import data_to_wire, message_to_wire, metadata_to_wire, part_to_wire
from ..data.actions import ArtifactUpdate, AuthRequired, Reject, Reply, Status
from ..data.card import STEPS_EXTENSION
from ..data.parts import as_parts
from .json_values import as_json
from .keys import short_hash

if TYPE_CHECKING:
    from ...data.interrupt import InterruptContext
    from .turn import Turn

__all__ = ["Teller", "question"]

_BATCH_SECONDS: Final = 0.03
_BATCH_SIZE: Final = 4_096


class _Piece:
    """An artifact that is still being streamed."""

    __slots__ = ("artifact_id", "name", "sent", "sent_at", "waiting")

    def __init__(self, name: str) -> None:
        self.artifact_id = new_id()
        self.name = name
        self.waiting = ""
        self.sent: list[str] = []
        self.sent_at = 0.0


class Teller:
    """Reports the events of one turn."""

    __slots__ = ("_open", "_turn", "asks_for", "outputs", "rejected", "reply")

    def __init__(self, turn: Turn) -> None:
        self._turn = turn
        self._open: dict[str, _Piece] = {}  # by invocation id
        self.reply: pb.Message | None = None
        self.rejected: str | None = None
        # requested before an interrupt, or before the end
        self.asks_for: AuthRequired | None = None
        self.outputs = 0

    async def tell(self, event: AgentEvent) -> None:
        """Report one event."""
        if event.delta is not None:
            await self._delta(event)
            return
        action = event.action
        if isinstance(action, CustomAction):
            await self._said(action.value)
        elif isinstance(action, TransferToAgent):
            self._hint({"transfer": action.agent_name, "agent": event.agent_name})
        message = event.message
        if event.message is not None or event.custom_output is not None:
            self.asks_for = None  # the agent continues without it
        if message is not None and self.reply is None:
            await self._message(event, message)

    async def end(self) -> None:
        """Finish: streams without a final message are complete."""
        for invocation in list(self._open):
            await self._flush(invocation, last=True)

    # --- outputs ---

    async def _message(self, event: AgentEvent, message: Message) -> None:
        if message.role == "assistant":
            if message.reasoning:
                self._hint({"reasoning": message.reasoning, "agent": event.agent_name})
            for call in message.tool_calls:
                self._hint(
                    {
                        "toolCall": {"id": call.id, "name": call.name, "arguments": call.arguments},
                        "agent": event.agent_name,
                    }
                )
            if message.content or event.custom_output is not None:
                await self._output(event, message)
        elif message.role == "tool":
            self._hint(
                {
                    "toolResult": {
                        "id": message.tool_call_id,
                        "name": message.tool_name,
                        "text": message.text,
                    },
                    "agent": event.agent_name,
                }
            )

    async def _output(self, event: AgentEvent, message: Message) -> None:
        """Report an agent's output: the last chunk of a stream, or all of it."""
        self.outputs += 1
        piece = self._open.pop(event.invocation_id, None)
        if piece is not None and event.custom_output is None and isinstance(message.content, str):
            sent = "".join(piece.sent)
            if message.content.startswith(sent):
                await self._send(piece, message.content[len(sent) :], last=True)
                return
        if event.custom_output is not None:
            parts = [
                pb.Part(
                    data=data_to_wire(as_json(event.custom_output)), media_type="application/json"
                )
            ]
        elif isinstance(message.content, str):
            parts = [pb.Part(text=message.content)]
        else:
            parts = [part_to_wire(part) for part in as_parts(message.content)]
        artifact = pb.Artifact(
            artifact_id=new_id() if piece is None else piece.artifact_id,
            name=event.agent_name,
            parts=parts,
        )
        await self._turn.artifact(artifact, append=False, last=True)

    async def output(self, name: str, value: object) -> None:
        """Report the output of the run, if no message contains it."""
        self.outputs += 1
        await self._turn.artifact(
            pb.Artifact(artifact_id=new_id(), name=name, parts=[_as_part(value)]),
            append=False,
            last=True,
        )

    # --- streamed text ---

    async def _delta(self, event: AgentEvent) -> None:
        invocation, delta = event.invocation_id, event.delta
        assert delta is not None
        if event.error is not None:  # the model starts again: the streamed text is void
            piece = self._open.get(invocation)
            if piece is not None:
                piece.waiting = ""
                if piece.sent:
                    piece.sent = []
                    await self._turn.artifact(
                        pb.Artifact(
                            artifact_id=piece.artifact_id, name=piece.name, parts=[pb.Part(text="")]
                        ),
                        append=False,
                        last=False,
                    )
            return
        if delta.reasoning:
            self._hint({"reasoning": delta.reasoning, "agent": event.agent_name})
        if not delta.content:
            return
        piece = self._open.get(invocation)
        if piece is None:
            piece = self._open[invocation] = _Piece(event.agent_name)
        piece.waiting += delta.content
        now = asyncio.get_running_loop().time()
        # The first chunk is sent at once. After that, deltas within some milliseconds are sent
        # together.
        if now - piece.sent_at >= _BATCH_SECONDS or len(piece.waiting) >= _BATCH_SIZE:
            await self._flush(invocation, last=False)

    def flush_due(self) -> bool:
        """Return whether streamed text is waiting."""
        return any(piece.waiting for piece in self._open.values())

    async def flush(self) -> None:
        """Send the waiting text."""
        for invocation, piece in list(self._open.items()):
            if piece.waiting and invocation in self._open:
                await self._flush(invocation, last=False)

    async def _flush(self, invocation: str, *, last: bool) -> None:
        piece = self._open[invocation]
        if last:
            del self._open[invocation]
        text, piece.waiting = piece.waiting, ""
        await self._send(piece, text, last=last)

    async def _send(self, piece: _Piece, text: str, *, last: bool) -> None:
        begun = bool(piece.sent)
        piece.sent.append(text)
        piece.sent_at = asyncio.get_running_loop().time()
        artifact = pb.Artifact(
            artifact_id=piece.artifact_id, name=piece.name, parts=[pb.Part(text=text)]
        )
        await self._turn.artifact(artifact, append=begun, last=last, joins=True)

    # --- actions ---

    async def _said(self, value: object) -> None:
        turn = self._turn
        match value:
            case Reply(message):
                self.reply = message_to_wire(message)
                self.reply.role = pb.ROLE_AGENT
            case Reject(reason):
                self.rejected = reason
            case Status(text):
                await turn.working(turn.said(text) if text else None)
            case ArtifactUpdate(name, parts, append, last):
                self.asks_for = None
                self.outputs += 1
                artifact_id = short_hash(f"{turn.log.task.id}:{name}")
                await turn.artifact(
                    pb.Artifact(
                        artifact_id=artifact_id,
                        name=name,
                        parts=[part_to_wire(part) for part in parts],
                    ),
                    append=append,
                    last=last,
                )
            case AuthRequired():
                self.asks_for = value

    def _hint(self, what: dict[str, object]) -> None:
        if self._turn.wants_hints:
            self._turn.hint(STEPS_EXTENSION, metadata_to_wire({STEPS_EXTENSION: as_json(what)}))


def _as_part(value: object) -> pb.Part:
    if isinstance(value, str):
        return pb.Part(text=value)
    return pb.Part(data=data_to_wire(as_json(value)), media_type="application/json")


def question(
    turn: Turn, contexts: tuple[InterruptContext, ...], auth: AuthRequired | None
) -> tuple[int, pb.Message, dict[str, bool]]:
    """Return the question of a paused task: the state, the message, and its interrupts."""
    message = turn.said("")
    del message.parts[:]
    pending: dict[str, bool] = {}
    state = pb.TASK_STATE_INPUT_REQUIRED if auth is None else pb.TASK_STATE_AUTH_REQUIRED
    for context in contexts:
        info: Any = context.info
        if isinstance(info, AuthRequired):
            state, info = pb.TASK_STATE_AUTH_REQUIRED, info.info
        elif auth is not None and info is None:
            info = auth.info
        said = as_json(info)
        options = _options(info, said)
        pending[context.id] = bool(getattr(info, "check_answer", None))
        message.parts.append(pb.Part(text=_text(said)))
        data = {"interruptId": context.id, "info": said, "options": options}
        message.parts.append(pb.Part(data=data_to_wire(data), media_type="application/json"))
    if not contexts and auth is not None:
        said = as_json(auth.info)
        message.parts.append(pb.Part(text=_text(said)))
        message.parts.append(
            pb.Part(data=data_to_wire({"info": said}), media_type="application/json")
        )
    return state, message, pending


def _options(info: object, said: object) -> object:
    if callable(getattr(info, "check_answer", None)):
        return ["approve", "deny"]
    return said.get("options") if isinstance(said, dict) else None


def _text(said: object) -> str:
    """Return the question for people to read."""
    if isinstance(said, str):
        return said
    if isinstance(said, dict):
        for name in ("question", "message", "text", "prompt"):
            if isinstance(said.get(name), str):
                return str(said[name])
        if "tool_name" in said:
            return f"May {said['tool_name']} be called with {said.get('arguments')}?"
    return "Input is required." if said is None else str(said)
