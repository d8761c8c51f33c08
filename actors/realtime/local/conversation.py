"""One connection of the local server: a strict session of the protocol.

It holds the settings, the conversation and the responses, and refuses every message that OpenAI's
server refuses, with the same code.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from ....runtime.data.chat import new_id
from ....runtime.tasks import start_task
from .script import Call, Gate, Reply, Say, Write, spoken_text, usual_usage, words

if TYPE_CHECKING:
    from .server import LocalRealtimeServer, Peer

__all__ = ["ServerSession"]

_MOST_APPEND: Final = 15 * 1024 * 1024
_MOST_DESCRIPTION: Final = 1024
_LONGEST_ID: Final = 32


class Refusal(Exception):
    """The server refuses a request of the client."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class ServerSession:
    """One connection."""

    def __init__(self, server: LocalRealtimeServer, peer: Peer, model: str) -> None:
        self.server = server
        self.peer = peer
        self.id = f"sess_{new_id()}"
        self.settings: dict[str, Any] = {
            "type": "realtime",
            "model": model,
            "tools": [],
            "output_modalities": ["audio"],
            "audio": {"input": {}, "output": {}},
        }
        self.items: list[dict[str, Any]] = []
        self.audio_ms: dict[str, float] = {}  # of each assistant item with audio
        self.active: dict[str, Any] | None = None
        self.playing: set[asyncio.Task[None]] = set()
        self._play: asyncio.Task[None] | None = None
        self.buffer = bytearray()
        self.heard: str | None = None  # words of the current user speech
        self.speech_item: str | None = None
        self.has_spoken = False

    async def begin(self) -> None:
        await self.send({"type": "session.created", "session": {**self.settings, "id": self.id}})

    async def send(self, message: dict[str, Any]) -> None:
        await self.peer.send({"event_id": f"event_{new_id()}", **message})

    async def handle(self, message: dict[str, Any]) -> None:
        """Handle a message, or refuse it."""
        event_id = message.get("event_id")
        try:
            handler = self._HANDLERS.get(message.get("type", ""))
            if handler is None:
                raise Refusal(  # noqa: TRY301
                    "invalid_value",
                    f"Invalid value: {message.get('type')!r}. Supported values are: "
                    f"{', '.join(sorted(self._HANDLERS))}.",
                )
            if (code := self.server.refusal_of(message)) is not None:
                raise Refusal(  # noqa: TRY301 -- as above
                    code, f"{message['type']} was refused by the script of the local server"
                )
            await getattr(self, handler)(message)
        except Refusal as refusal:
            self.server.errors.append((refusal.code, message))
            error = {
                "type": "invalid_request_error",
                "code": refusal.code,
                "message": str(refusal),
                "param": None,
                "event_id": event_id,
            }
            await self.send({"type": "error", "error": error})

    async def stop(self) -> None:
        for task in tuple(self.playing):
            task.cancel()
        await asyncio.gather(*self.playing, return_exceptions=True)

    # --- settings ---

    async def _session_update(self, message: dict[str, Any]) -> None:
        wanted = message["session"]
        if wanted.get("type") != "realtime":
            raise Refusal(
                "missing_required_parameter", "Missing required parameter: 'session.type'."
            )
        modalities = wanted.get("output_modalities")
        if modalities is not None and sorted(modalities) not in (["audio"], ["text"]):
            raise Refusal(
                "invalid_value",
                f"Invalid modalities: {modalities}. Supported combinations are: ['text'] and "
                "['audio'].",
            )
        names = set()
        for tool in wanted.get("tools", ()):
            if len(tool.get("description") or "") > _MOST_DESCRIPTION:
                raise Refusal(
                    "string_above_max_length",
                    "Invalid 'session.tools[].description': expected at most "
                    f"{_MOST_DESCRIPTION} characters. Shorten it.",
                )
            if tool["name"] in names:
                raise Refusal(
                    "invalid_value", f"Duplicate tool name: {tool['name']}. Names must be unique."
                )
            names.add(tool["name"])
        voice = wanted.get("audio", {}).get("output", {}).get("voice")
        if (
            voice is not None
            and self.has_spoken
            and voice != self.settings["audio"]["output"].get("voice")
        ):
            raise Refusal(
                "cannot_update_voice",
                "Cannot update a conversation's voice if assistant audio is present.",
            )
        for name, value in wanted.items():
            if name != "audio":
                self.settings[name] = value
        for side, part in wanted.get("audio", {}).items():
            self.settings["audio"].setdefault(side, {}).update(part)
        await self.send({"type": "session.updated", "session": {**self.settings, "id": self.id}})

    def _format(self, side: str) -> tuple[int, int]:
        """Return the sample rate and the bytes of a sample."""
        kind = self.settings["audio"].get(side, {}).get("format", {}).get("type", "audio/pcm")
        return (24_000, 2) if kind == "audio/pcm" else (8_000, 1)

    # --- input ---

    async def _append(self, message: dict[str, Any]) -> None:
        if len(message["audio"]) > _MOST_APPEND:
            raise Refusal(
                "string_above_max_length",
                "Invalid 'audio': expected at most 15 MiB. Send shorter chunks.",
            )
        try:
            audio = base64.b64decode(message["audio"], validate=True)
        except binascii.Error:
            raise Refusal(
                "invalid_value", "Invalid 'audio': expected base64-encoded bytes."
            ) from None
        if len(audio) % self._format("input")[1]:
            raise Refusal(
                "invalid_value",
                "Invalid 'audio': expected a whole number of 16-bit samples, got an odd number "
                "of bytes.",
            )
        self.buffer += audio
        self.server.received_audio += len(audio)
        detection = self.settings["audio"].get("input", {}).get("turn_detection")
        if detection is None:
            text = spoken_text(audio)
            self.heard = text or self.heard
            return
        await self._detect(spoken_text(audio), detection)

    async def _detect(self, text: str | None, detection: Mapping[str, Any]) -> None:
        if text and self.heard is None:
            self.heard, self.speech_item = text, _item_id()
            await self.send(
                {
                    "type": "input_audio_buffer.speech_started",
                    "audio_start_ms": 0,
                    "item_id": self.speech_item,
                }
            )
            if self.active is not None and detection.get("interrupt_response", True):
                await self._end_active("cancelled", "turn_detected")
        elif text:
            self.heard = f"{self.heard} {text}"
        elif text == "" and self.heard is not None:
            await self.send(
                {
                    "type": "input_audio_buffer.speech_stopped",
                    "audio_end_ms": 0,
                    "item_id": self.speech_item,
                }
            )
            await self._commit_buffer()
            if detection.get("create_response", True) and self.active is None:
                await self.respond({})

    async def _commit(self, message: dict[str, Any]) -> None:
        if not self.buffer:
            raise Refusal(
                "input_audio_buffer_commit_empty",
                "Error committing input audio buffer: buffer too small. Append audio before you "
                "commit.",
            )
        await self._commit_buffer()

    async def _clear(self, message: dict[str, Any]) -> None:
        self.buffer.clear()
        await self.send({"type": "input_audio_buffer.cleared"})

    async def _commit_buffer(self) -> None:
        item_id, text = self.speech_item or _item_id(), self.heard or ""
        self.buffer.clear()
        self.heard = self.speech_item = None
        previous = self.items[-1]["id"] if self.items else None
        await self.send(
            {
                "type": "input_audio_buffer.committed",
                "item_id": item_id,
                "previous_item_id": previous,
            }
        )
        item = {
            "id": item_id,
            "type": "message",
            "role": "user",
            "status": "completed",
            "content": [{"type": "input_audio", "transcript": None}],
        }
        await self._add(item)
        if self.settings["audio"].get("input", {}).get("transcription"):
            await self.server.transcribe(self, item, text)

    async def transcribed(self, item: dict[str, Any], text: str, *, failed: bool = False) -> None:
        """Set the transcript of an item, or report that it failed."""
        kind = "conversation.item.input_audio_transcription"
        if failed:
            error = {
                "type": "transcription_error",
                "code": "audio_unintelligible",
                "message": "it cannot be understood",
            }
            await self.send(
                {
                    "type": f"{kind}.failed",
                    "item_id": item["id"],
                    "content_index": 0,
                    "error": error,
                }
            )
            return
        item["content"][0]["transcript"] = text
        await self.send(
            {
                "type": f"{kind}.completed",
                "item_id": item["id"],
                "content_index": 0,
                "transcript": text,
                "usage": {"type": "tokens", "total_tokens": 3},
            }
        )

    # --- the conversation ---

    def find(self, item_id: str) -> dict[str, Any] | None:
        return next((one for one in self.items if one["id"] == item_id), None)

    async def _add(self, item: dict[str, Any], previous: str | None = None) -> None:
        if previous is None:
            before = self.items[-1]["id"] if self.items else None
            self.items.append(item)
        else:
            index = next(number for number, one in enumerate(self.items) if one["id"] == previous)
            before = previous
            self.items.insert(index + 1, item)
        await self.send(
            {"type": "conversation.item.added", "previous_item_id": before, "item": item}
        )

    async def _create_item(self, message: dict[str, Any]) -> None:
        item = {
            "id": _item_id(),
            "object": "realtime.item",
            "status": "completed",
            **message["item"],
        }
        if len(item["id"]) > _LONGEST_ID and "id" in message["item"]:
            raise Refusal(
                "string_above_max_length",
                f"Invalid 'item.id': expected at most {_LONGEST_ID} characters. Shorten it.",
            )
        if self.find(item["id"]) is not None:
            raise Refusal(
                "item_already_exists",
                f"Item with id {item['id']!r} already exists. Use another id.",
            )
        previous = message.get("previous_item_id")
        if previous is not None and self.find(previous) is None:
            raise Refusal(
                "item_not_found",
                f"Invalid 'previous_item_id': the item {previous!r} does not exist.",
            )
        if item["type"] == "function_call_output":
            calls = {one.get("call_id") for one in self.items if one["type"] == "function_call"}
            if item["call_id"] not in calls:
                raise Refusal(
                    "invalid_tool_call_id",
                    f"Tool call ID {item['call_id']!r} not found in conversation. Send the "
                    "output of a call that it has.",
                )
            if any(
                one["type"] == "function_call_output" and one["call_id"] == item["call_id"]
                for one in self.items
            ):
                raise Refusal(
                    "duplicate_output", f"Tool call {item['call_id']!r} already has an output."
                )
            if not isinstance(item["output"], str):
                raise Refusal("invalid_type", "Invalid type for 'item.output': expected a string.")
        elif item["type"] == "message":
            self._check_content(item)
        elif item["type"] != "function_call":
            raise Refusal(
                "invalid_value",
                f"Invalid value of 'item.type': {item['type']!r}. Supported values are: message, "
                "function_call and function_call_output.",
            )
        await self._add(item, previous)
        await self.send(
            {"type": "conversation.item.done", "previous_item_id": previous, "item": item}
        )

    def _check_content(self, item: dict[str, Any]) -> None:
        allowed = {
            "user": {"input_text", "input_audio", "input_image"},
            "system": {"input_text"},
            "assistant": {"output_text"},
        }[item["role"]]
        for part in item["content"]:
            if part["type"] not in allowed:
                raise Refusal(
                    "invalid_value",
                    f"Invalid value: {part['type']!r}. A message with role {item['role']!r} "
                    f"accepts {sorted(allowed)}.",
                )

    async def _delete_item(self, message: dict[str, Any]) -> None:
        item = self.find(message["item_id"])
        if item is None:
            raise Refusal(
                "item_delete_invalid_item_id",
                f"Error deleting item: the item with id {message['item_id']!r} does not exist.",
            )
        self.items.remove(item)
        await self.send({"type": "conversation.item.deleted", "item_id": item["id"]})

    async def _retrieve_item(self, message: dict[str, Any]) -> None:
        item = self.find(message["item_id"])
        if item is None:
            raise Refusal(
                "item_retrieve_invalid_item_id",
                f"Error retrieving item: the item with id {message['item_id']!r} does not exist.",
            )
        await self.send({"type": "conversation.item.retrieved", "item": item})

    async def _truncate_item(self, message: dict[str, Any]) -> None:
        item_id, end = message["item_id"], message["audio_end_ms"]
        item = self.find(item_id)
        if item is None or item_id not in self.audio_ms:
            raise Refusal(
                "item_truncate_invalid_item_id",
                f"Only model output audio messages can be truncated, got the item {item_id!r}.",
            )
        if end > self.audio_ms[item_id]:
            raise Refusal(
                "invalid_value",
                f"Audio content of {self.audio_ms[item_id]:g}ms is already shorter than {end}ms",
            )
        self.audio_ms[item_id] = end
        # the transcript is discarded
        item["content"] = [{"type": "output_audio", "transcript": None}]
        self.server.truncations.append((item_id, end))
        await self.send(
            {
                "type": "conversation.item.truncated",
                "item_id": item_id,
                "content_index": message["content_index"],
                "audio_end_ms": end,
            }
        )

    # --- responses ---

    async def _create_response(self, message: dict[str, Any]) -> None:
        options = message.get("response") or {}
        if options.get("conversation") != "none" and self.active is not None:
            code = "conversation_already_has_active_response"
            raise Refusal(
                code,
                f"Conversation already has an active response in progress: {self.active['id']}.",
            )
        await self.respond(options)

    async def _cancel_response(self, message: dict[str, Any]) -> None:
        if self.active is None or message.get("response_id") not in (None, self.active["id"]):
            raise Refusal(
                "response_cancel_not_active", "Cancellation failed: no active response found."
            )
        await self._end_active("cancelled", "client_cancelled")

    async def _end_active(self, status: str, reason: str) -> None:
        play, response = self._play, self.active
        if play is not None and response is not None:
            response["ending"] = (status, reason)
            play.cancel()
            await asyncio.gather(play, return_exceptions=True)
            if self.active is response:  # cancelled before the reply started
                await self._finish(response, status, reason, None, None)

    async def respond(self, options: dict[str, Any]) -> None:
        """Start a response."""
        outside = options.get("conversation") == "none"
        response: dict[str, Any] = {
            "id": f"resp_{new_id()}",
            "object": "realtime.response",
            "status": "in_progress",
            "output": [],
            "conversation_id": None if outside else "conv_1",
        }
        self.server.responses.append((response["id"], options, [dict(one) for one in self.items]))
        if not outside:
            self.active = response
        await self.send({"type": "response.created", "response": dict(response)})
        reply = self.server.next_reply(self, options)
        task = start_task(self._answer(response, reply, outside=outside), "a scripted reply")
        self.playing.add(task)
        task.add_done_callback(self.playing.discard)
        if not outside:
            self._play = task

    async def _answer(self, response: dict[str, Any], reply: Reply, *, outside: bool) -> None:
        status, reason = reply.status, None
        item: dict[str, Any] | None = None
        try:
            for part in reply.parts:
                if isinstance(part, Gate):
                    part.reached.set()
                    await part.event.wait()
                    continue
                item = self._item_for(part)
                if not outside:
                    await self._add(item)
                await self.send(
                    {
                        "type": "response.output_item.added",
                        "response_id": response["id"],
                        "output_index": 0,
                        "item": item,
                    }
                )
                await self._speak(response["id"], item, part)
                await self._item_done(response, item, "completed")
                item = None
        except asyncio.CancelledError:
            if "ending" not in response:
                raise
            status, reason = response["ending"]
            if item is not None:
                await self._item_done(response, item, "incomplete")
        await self._finish(response, status, reason, reply.code, reply.usage)

    async def _finish(
        self,
        response: dict[str, Any],
        status: str,
        reason: str | None,
        code: str | None,
        usage: Mapping[str, Any] | None,
    ) -> None:
        if self.active is response:
            self.active = self._play = None
        details: dict[str, Any] = {"type": status, **({"reason": reason} if reason else {})}
        if status == "failed":
            details["error"] = {"type": "server_error", "code": code or "server_error"}
        await self.send(
            {
                "type": "response.done",
                "response": {
                    **response,
                    "status": status,
                    "status_details": details,
                    "usage": usage or usual_usage(),
                },
            }
        )

    def _item_for(self, part: Say | Write | Call) -> dict[str, Any]:
        item: dict[str, Any] = {
            "id": _item_id(),
            "object": "realtime.item",
            "status": "in_progress",
        }
        if isinstance(part, Call):
            return {
                **item,
                "id": part.item_id or item["id"],
                "type": "function_call",
                "name": part.name,
                "call_id": part.call_id,
                "arguments": "",
            }
        return {**item, "type": "message", "role": "assistant", "content": []}

    async def _speak(
        self, response_id: str, item: dict[str, Any], part: Say | Write | Call
    ) -> None:
        at = {
            "response_id": response_id,
            "item_id": item["id"],
            "output_index": 0,
            "content_index": 0,
        }
        if isinstance(part, Call):
            await self.send(
                {
                    "type": "response.function_call_arguments.delta",
                    **at,
                    "call_id": part.call_id,
                    "delta": part.arguments,
                }
            )
            await self.send(
                {
                    "type": "response.function_call_arguments.done",
                    **at,
                    "call_id": part.call_id,
                    "arguments": part.arguments,
                }
            )
            item["arguments"] = part.arguments
            return
        if isinstance(part, Write):
            item["content"] = [{"type": "output_text", "text": ""}]
            for word in words(part.text):
                item["content"][0]["text"] += word
                await self.send({"type": "response.output_text.delta", **at, "delta": word})
            await self.send({"type": "response.output_text.done", **at, "text": part.text})
            return
        await self._say(at, item, part)

    async def _say(self, at: dict[str, Any], item: dict[str, Any], part: Say) -> None:
        rate, width = self._format("output")
        self.has_spoken = True
        self.audio_ms[item["id"]] = 0
        item["content"] = [{"type": "output_audio", "transcript": ""}]
        spoken, sent = words(part.text), 0
        count = max(1, -(-part.ms // part.chunk_ms))
        for number in range(count):
            if number and part.gate is not None:
                await part.gate.wait()
            until = len(spoken) * (number + 1) // count
            for word in spoken[sent:until]:
                item["content"][0]["transcript"] += word
                await self.send(
                    {"type": "response.output_audio_transcript.delta", **at, "delta": word}
                )
            sent = until
            ms = min(part.chunk_ms, part.ms - number * part.chunk_ms)
            self.audio_ms[item["id"]] += ms
            audio = base64.b64encode(b"\2" * (ms * rate // 1000 * width)).decode()
            await self.send({"type": "response.output_audio.delta", **at, "delta": audio})
        await self.send({"type": "response.output_audio.done", **at})
        await self.send(
            {"type": "response.output_audio_transcript.done", **at, "transcript": part.text}
        )

    async def _item_done(self, response: dict[str, Any], item: dict[str, Any], status: str) -> None:
        item["status"] = status
        response["output"].append(item)
        await self.send(
            {
                "type": "response.output_item.done",
                "response_id": response["id"],
                "output_index": 0,
                "item": item,
            }
        )

    _HANDLERS: Final[Mapping[str, str]] = MappingProxyType(
        {
            "session.update": "_session_update",
            "input_audio_buffer.append": "_append",
            "input_audio_buffer.commit": "_commit",
            "input_audio_buffer.clear": "_clear",
            "conversation.item.create": "_create_item",
            "conversation.item.delete": "_delete_item",
            "conversation.item.retrieve": "_retrieve_item",
            "conversation.item.truncate": "_truncate_item",
            "response.create": "_create_response",
            "response.cancel": "_cancel_response",
        }
    )


def _item_id() -> str:
    return f"item_{new_id()}"[:_LONGEST_ID]
