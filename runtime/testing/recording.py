"""A real model's answers, recorded once and replayed.

Only texts that `redact` has processed are written, and the model is not called once the recording
exists.
"""

from __future__ import annotations

import json
import os
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Final

from ..data.chat import Message, MessageDelta, Part, TextPart, ToolCall, Usage
from ..errors import UsageError
from ..models import ChatModel, ModelRequest, ScriptedModel, answer_of
from ..models.protocol import StreamItem

__all__ = ["RecordingModel"]

_FORMAT: Final = 1


class RecordingModel:
    """Records the answers of a model, and replays them without a network.

        model = RecordingModel(OpenAIChatModel("gpt-4o"), "tests/recordings/weather.jsonl",
        redact=lambda text: text.replace(os.environ["NAME"], "NAME"))

    If the file does not exist, the model is called, and each answer is appended to the file. If it
    exists, the model is never called: each request is looked up in the file, by its redacted
    messages and tools, and a missing one is an error. To record again, delete the file. `redact`
    receives each text before it is written or looked up, and returns the text for the file: it must
    remove keys and personal data.
    """

    def __init__(
        self,
        model: ChatModel | None,
        path: str | os.PathLike[str],
        *,
        redact: Callable[[str], str] | None = None,
    ) -> None:
        self._model = model
        self._path = Path(path)
        self._redact = redact or _as_it_is
        self._answers: dict[str, deque[Message]] | None = None  # None while it records
        if self._path.exists():
            self._answers = self._read()
        elif model is None:
            msg = (
                f"RecordingModel: the recording {str(self._path)!r} does not exist, and "
                "there is no model to make one. Pass a model as the first argument."
            )
            raise UsageError(msg)

    def __repr__(self) -> str:
        return (
            f"RecordingModel({str(self._path)!r}, "
            f"{'records' if self._answers is None else 'replays'})"
        )

    async def generate(self, request: ModelRequest) -> Message:
        asked = self._asked(request)
        if self._answers is not None:
            return self._found(asked)
        assert self._model is not None
        answer = await answer_of(self._model, request)
        self._write(asked, answer)
        return answer

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamItem]:
        """Yield the whole answer word by word, so that recording and replaying behave the same."""
        answer = await self.generate(request)
        async for piece in ScriptedModel([answer]).stream(request):
            if isinstance(piece, MessageDelta):
                yield piece
        yield answer

    # --- the file: one JSON object a line, the request and the answer ---

    def _asked(self, request: ModelRequest) -> dict[str, object]:
        schema = request.output_schema
        return {
            "messages": [self._plain(message) for message in request.messages],
            "tools": sorted(tool.name for tool in request.tools),
            "tool_choice": request.tool_choice,
            "output_schema": None if schema is None else schema.name,
        }

    def _plain(self, message: Message) -> dict[str, object]:
        redact = self._redact
        content = message.content
        found: dict[str, object] = {
            "role": message.role,
            "content": redact(content)
            if isinstance(content, str)
            else [self._part(part) for part in content],
            "tool_calls": [
                {"id": call.id, "name": call.name, "arguments": redact(call.arguments)}
                for call in message.tool_calls
            ],
            "tool_call_id": message.tool_call_id,
            "tool_name": message.tool_name,
        }
        return {
            name: value for name, value in found.items() if value or name in ("role", "content")
        }

    def _part(self, part: Part) -> dict[str, object]:
        if isinstance(part, TextPart):
            return {"text": self._redact(part.text)}
        size = None if part.data is None else len(part.data)
        return {
            "type": type(part).__name__,
            "url": None if part.url is None else self._redact(part.url),
            "bytes": size,
        }

    def _write(self, asked: Mapping[str, object], answer: Message) -> None:
        usage = answer.usage
        said = {
            "text": self._redact(answer.text),
            "tool_calls": [
                {"id": call.id, "name": call.name, "arguments": self._redact(call.arguments)}
                for call in answer.tool_calls
            ],
            "usage": None
            if usage is None
            else [usage.input_tokens, usage.output_tokens, usage.cached_tokens, usage.requests],
        }
        line = json.dumps({"format": _FORMAT, "request": asked, "answer": said}, ensure_ascii=False)
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("a", encoding="utf-8") as file:
            file.write(f"{line}\n")

    def _read(self) -> dict[str, deque[Message]]:
        answers: dict[str, deque[Message]] = {}
        for number, line in enumerate(self._path.read_text(encoding="utf-8").splitlines(), 1):
            try:
                recorded = json.loads(line)
                said, usage = recorded["answer"], recorded["answer"]["usage"]
                calls = tuple(
                    ToolCall(call["id"], call["name"], call["arguments"])
                    for call in said["tool_calls"]
                )
                answer = Message(
                    "assistant", said["text"], calls, usage=None if usage is None else Usage(*usage)
                )
                answers.setdefault(_key(recorded["request"]), deque()).append(answer)
            except (ValueError, KeyError, TypeError) as problem:
                msg = (
                    f"RecordingModel: line {number} of {str(self._path)!r} is not a "
                    f"recorded call: {problem}. Delete the file to record again."
                )
                raise UsageError(msg) from problem
        return answers

    def _found(self, asked: Mapping[str, object]) -> Message:
        assert self._answers is not None
        answers = self._answers.get(_key(asked))
        if answers:
            # Repeated requests receive the recorded answers in order, and then the last one
            # forever.
            return answers.popleft() if len(answers) > 1 else answers[0]
        messages = asked["messages"]
        last = messages[-1] if isinstance(messages, list) and messages else None
        told = f"has no answer to this request, which ends with {last!r}"
        msg = (
            f"RecordingModel: {str(self._path)!r} {told}. If the agent has changed, delete the "
            "file to record again."
        )
        raise UsageError(msg)


def _key(asked: Mapping[str, object]) -> str:
    return json.dumps(asked, ensure_ascii=False, sort_keys=True)


def _as_it_is(text: str) -> str:
    return text
