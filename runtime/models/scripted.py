"""A model that returns canned replies, for tests.

It records its requests, and never uses a network. It takes no time except for its `delay`.
"""

from __future__ import annotations

import inspect
import json
import re
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from typing import Final, TypeAlias, overload

from ..clock import sleep
from ..data.chat import Message, MessageDelta, ToolCall, ToolCallDelta
from ..errors import UsageError
from ..option_names import suggests_options
from .protocol import ModelRequest, StreamItem

__all__ = ["Arguments", "Call", "Line", "Reply", "ScriptedModel", "ToolCalls"]

_WORDS: Final = re.compile(r"\s*\S+\s*?(?=\s|$)|\s+")
_ONLY_A_NAME: Final = 1
_NAME_AND_ARGUMENTS: Final = 2


Arguments: TypeAlias = Mapping[str, object] | str | None
"""The arguments of a scripted call: plain data that JSON can hold, or the JSON text itself."""

Call: TypeAlias = ToolCall | tuple[str] | tuple[str, Arguments] | str


class ToolCalls:
    """A reply that calls tools: `ToolCalls("get_weather", {"city": "Paris"})`.

    Several calls: `ToolCalls(("get_weather", {"city": "Paris"}), ("get_time", {}))`, or
    `ToolCalls(get_weather={"city": "Paris"}, get_time={})`, or `ToolCall`s. Arguments that are a
    string are passed verbatim, however broken; others are converted to JSON. `text` is the text of
    the same reply.
    """

    __slots__ = ("calls", "text")

    @overload
    def __init__(
        self, name: str, arguments: Arguments, /, *, text: str = "", **by_name: Arguments
    ) -> None: ...

    @overload
    def __init__(self, /, *calls: Call, text: str = "", **by_name: Arguments) -> None: ...

    def __init__(self, /, *calls: Call | Arguments, text: str = "", **by_name: Arguments) -> None:
        listed = (calls,) if calls and isinstance(calls[0], str) else calls
        self.calls = (
            *(_as_call(call) for call in listed),
            *(_as_call(item) for item in by_name.items()),
        )
        self.text = text
        if not self.calls:
            msg = (
                "ToolCalls must have at least one call. Write, for example, "
                'ToolCalls("get_weather", {"city": "Paris"}).'
            )
            raise UsageError(msg)

    def __repr__(self) -> str:
        text = f", text={self.text!r}" if self.text else ""
        calls = ", ".join(f"({call.name!r}, {call.arguments!r})" for call in self.calls)
        return f"ToolCalls({calls}{text})"

    def message(self, ids: Iterator[int]) -> Message:
        """Return the reply; calls without an id are numbered."""
        calls = tuple(
            call if call.id else ToolCall(f"call_{next(ids)}", call.name, call.arguments)
            for call in self.calls
        )
        return Message("assistant", self.text, calls)


Reply: TypeAlias = Message | str | ToolCalls | BaseException
Line: TypeAlias = Reply | type[BaseException] | Callable[[ModelRequest], Reply | Awaitable[Reply]]


@suggests_options
class ScriptedModel:
    """Answers the first call with the first line of `script`, the second with the second, and so
    on.

    A line is a `Message`, a string, `ToolCalls(...)`, an exception, which is raised, or a function,
    sync or `async`, that receives the request and returns one of these. `requests` records the
    requests. A call beyond the script raises `UsageError`, which shows the request; `assert_done()`
    fails if lines are left. `delay` is the number of seconds that each reply takes. One object may
    serve any number of threads and loops.
    """

    def __init__(self, script: Iterable[Line] | Reply = (), delay: float = 0.0) -> None:
        lines: tuple[Line, ...] = (
            (script,)
            if isinstance(script, str | Message | ToolCalls | BaseException)
            else tuple(script)
        )
        for index, line in enumerate(lines):
            _check(line, f"script[{index}]")
        if not delay >= 0:
            msg = f"ScriptedModel: delay must be a number of seconds, 0 or more, got {delay}."
            raise UsageError(msg)
        self.requests: list[ModelRequest] = []
        self._lines = lines
        self._delay = delay
        self._lock = threading.Lock()
        self._ids = iter(range(1, 1 << 62))

    def __repr__(self) -> str:
        return (
            f"ScriptedModel({len(self._lines)} lines, "
            f"{min(len(self.requests), len(self._lines))} used)"
        )

    async def generate(self, request: ModelRequest) -> Message:
        if self._delay:
            await sleep(self._delay)
        with self._lock:  # so that requests and lines have the same order
            index = len(self.requests)
            self.requests.append(request)
        if index >= len(self._lines):
            raise self._beyond(request, index)
        line = self._lines[index]
        if type(line) is Message:
            return line
        return await self._reply(line, request, index)

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamItem]:
        """Yield the text word by word, the calls in two deltas each, then the whole message."""
        message = await self.generate(request)
        if message.reasoning:
            for word in _WORDS.findall(message.reasoning):
                yield MessageDelta(reasoning=word)
        for word in _WORDS.findall(message.text):
            yield MessageDelta(word)
        for index, call in enumerate(message.tool_calls):
            yield MessageDelta(tool_calls=(ToolCallDelta(index, call.id, call.name),))
            yield MessageDelta(tool_calls=(ToolCallDelta(index, arguments=call.arguments),))
        yield message

    def assert_done(self) -> None:
        """Fail if there are lines that no call has used."""
        used = len(self.requests)
        if used < len(self._lines):
            left = "\n".join(
                f"  script[{index}]: {line!r}"
                for index, line in enumerate(self._lines)
                if index >= used
            )
            msg = f"ScriptedModel: {used} of {len(self._lines)} lines were used. Left:\n{left}"
            raise AssertionError(msg)

    async def _reply(self, line: Line, request: ModelRequest, index: int) -> Message:
        reply: object = line
        if isinstance(line, type):
            reply = line()
        elif callable(line):
            reply = line(request)
            if inspect.isawaitable(reply):
                reply = await reply
        if isinstance(reply, str):
            return Message("assistant", reply)
        if isinstance(reply, ToolCalls):
            return reply.message(self._ids)
        if isinstance(reply, BaseException):
            raise reply
        if not isinstance(reply, Message):
            msg = (
                f"ScriptedModel: the function in script[{index}] must return a Message, a "
                f"string, ToolCalls(...) or an exception, got {reply!r}."
            )
            raise UsageError(msg)
        _check(reply, f"what the function in script[{index}] made")
        return reply

    def _beyond(self, request: ModelRequest, index: int) -> UsageError:
        shown = "\n".join(f"  {_shown(message)}" for message in request.messages[-5:])
        earlier = (
            f"  ... and {len(request.messages) - 5} before\n" if len(request.messages) > 5 else ""  # noqa: PLR2004 -- the last five are shown
        )
        tools = ", ".join(tool.name for tool in request.tools) or "none"
        return UsageError(
            f"ScriptedModel: call {index + 1} has no reply, because the script has only "
            f"{len(self._lines)}. Add a reply, or find out why the call was made. Its "
            f"messages:\n{earlier}{shown}\nIts tools: {tools}"
        )


def _as_call(call: object) -> ToolCall:
    if isinstance(call, ToolCall):
        return call
    if isinstance(call, str):
        call = (call,)
    if not (
        isinstance(call, tuple | list)
        and len(call) in {_ONLY_A_NAME, _NAME_AND_ARGUMENTS}
        and isinstance(call[0], str)
    ):
        msg = (
            f"ToolCalls: {call!r} is neither a ToolCall nor a pair of name and arguments, such "
            'as ("get_weather", {"city": "Paris"}).'
        )
        raise UsageError(msg)
    arguments = call[1] if len(call) == _NAME_AND_ARGUMENTS else {}
    if isinstance(arguments, str):
        return ToolCall("", call[0], arguments)
    try:
        return ToolCall(
            "",
            call[0],
            json.dumps(
                {} if arguments is None else arguments, separators=(",", ":"), ensure_ascii=False
            ),
        )
    except (TypeError, ValueError) as error:
        msg = (
            f"ToolCalls: the arguments {arguments!r} of {call[0]!r} cannot be encoded as "
            f"JSON: {error}. Pass plain data, or the JSON text."
        )
        raise UsageError(msg) from error


def _check(line: object, where: str) -> None:
    if isinstance(line, Message):
        if line.role != "assistant":
            msg = (
                f"ScriptedModel: {where} is a message of role {line.role!r}, but a model answers "
                "as 'assistant': use Message.assistant(...)."
            )
            raise UsageError(msg)
    elif isinstance(line, type) and not issubclass(line, BaseException):
        msg = (
            f"ScriptedModel: {where} must be a Message, a string, ToolCalls(...), an "
            f"exception or a function, got the class {line.__name__}."
        )
        raise UsageError(msg)
    elif not isinstance(line, str | ToolCalls | BaseException) and not callable(line):
        msg = (
            f"ScriptedModel: {where} must be a Message, a string, ToolCalls(...), an "
            f"exception or a function of the request, got {line!r}."
        )
        raise UsageError(msg)


def _shown(message: Message) -> str:
    calls = "".join(f" -> {call.name}({call.arguments})" for call in message.tool_calls)
    return f"{message.role}: {message.text[:300]!r}{calls}"
