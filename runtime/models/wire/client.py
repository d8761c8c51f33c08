"""A model's requests on one event loop: from the bytes of a body to the values of its reply.

The target is determined on first use, a key function is called for each request, and errors become
those of the `openai` client. Every reply is either read to its end or its connection is closed.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

from ...clock import HERE, Timer
from ...errors import ModelError
from ..openai_errors import model_errors, raise_mapped
from .options import check_headers, without_keys
from .protocol import Sent, Transport, TransportError, TransportReply
from .sse import DONE, EventDecoder, check_head, decoded
from .target import Target, TargetFinder, check_url

__all__ = ["Key", "WireClient"]

_SECONDS_TO_THE_END: Final = 0.1
_MOST_OF_AN_ERROR: Final = 1024 * 1024
_OK, _NO_LONGER_OK = 200, 300
_OF_JSON: Final = (b"{", b"[")


class Key:
    """A key returned by a function.

    The `openai` client gets a placeholder, which is replaced in each request.
    """

    MARK: Final = "offbook-asks-for-the-key"

    def __init__(self, ask: Callable[[], Awaitable[str]]) -> None:
        self._ask = ask

    async def mark(self) -> str:
        """Return the placeholder that the client uses as the key."""
        return self.MARK

    async def put_into(self, target: Target, who: str) -> Target:
        """Return the target with the current key."""
        key = await self._ask()
        if not isinstance(key, str) or not key:
            msg = (
                f"{who}: the function api_key= must return the key as a string, got "
                f"{type(key).__name__ if not isinstance(key, str) else 'an empty string'}."
            )
            raise ModelError(msg, kind="auth")
        headers = {name: value.replace(self.MARK, key) for name, value in target.headers.items()}
        check_headers(who, headers)
        return replace(target, headers=headers)


class WireClient:
    """The connection of one model to its provider, on one loop."""

    __slots__ = (
        "_decode",
        "_finder",
        "_key",
        "_most_bytes",
        "_most_seconds",
        "_target",
        "_transport",
        "_transport_to",
        "who",
    )

    def __init__(
        self,
        finder: TargetFinder,
        transport_to: Callable[[str], Transport],
        decode: Callable[[bytes], Any],
        key: Key | None,
        who: str,
        most_bytes: int,
        most_seconds: float,
    ) -> None:
        self._finder = finder
        self._transport_to = transport_to
        self._transport: Transport | None = None
        self._decode = decode
        self._key = key
        self._target: Target | None = None
        self._most_bytes = most_bytes
        self._most_seconds = most_seconds
        self.who = who

    async def whole(self, body: bytes, timeout: float | None, sent: Sent) -> Any:
        """Return the value of the reply; its text, if it is not JSON."""
        # Not `with model_errors(...)`, which is two objects for each waiting request.
        try:
            reply = await self._open(body, timeout, sent)
            timer = self._timer(reply)
            try:
                data = await self._read(reply, self._most_bytes)
            except TransportError as error:
                raise await self._finder.lost_error(error)  # noqa: B904 -- it has a cause of its own
            finally:
                timer.cancel()
                reply.drop()
            return self._value(reply, data)
        except Exception as error:
            raise_mapped(error, self.who)
            raise

    def _value(self, reply: TransportReply, data: bytes) -> Any:
        if "json" not in reply.headers.get("Content-Type", "json") and not data.lstrip().startswith(
            _OF_JSON
        ):
            return data.decode(errors="replace")
        return self._decode(data)

    async def batches(
        self, body: bytes, timeout: float | None, sent: Sent
    ) -> AsyncGenerator[list[Any], None]:
        """Yield the values of a stream's events, grouped as they arrive; `DONE` is the very last,
        if the provider sends it.

        Closing this also closes its connection, unless the reply was read to its end.
        """
        who, decoder, left, decode = self.who, EventDecoder(), self._most_bytes, self._decode
        errors = model_errors(who)
        with errors:
            reply = await self._open(body, timeout, sent)
        timer = self._timer(reply)
        try:
            while True:
                with errors:
                    try:
                        piece = await reply.next_piece()
                    except Exception as problem:  # noqa: BLE001 -- it is raised as the transport's error
                        raise _of_transport(reply, problem) from None
                    if not piece:
                        check_head(decoder, who)
                        return
                    left -= len(piece)
                    if left < 0:
                        raise self._too_large()
                    items = decoded(decoder.feed(piece), who, decode)
                if not items:
                    continue
                if items[-1] is DONE:
                    await _to_the_end(reply)
                    yield items
                    return
                yield items
        finally:
            timer.cancel()
            reply.drop()

    def _timer(self, reply: TransportReply) -> Timer:
        """Start the timer that ends a reply which takes too long in total."""
        text = (
            f"The reply took longer than {self._most_seconds:g} s. If that is intended, "
            "pass a larger max_reply_seconds to the model."
        )
        return HERE.call_later(
            self._most_seconds, reply.expire, TransportError("ReadTimeout", text, "timeout")
        )

    def is_closed(self) -> bool:
        return self._transport is not None and self._transport.is_closed()

    async def close(self) -> None:
        if self._transport is not None:
            await self._transport.close()

    async def _open(self, body: bytes, timeout: float | None, sent: Sent) -> TransportReply:
        """Return the reply to a request, if it is successful."""
        target = self._target or await self._find()
        if self._key is not None:
            target = await self._key.put_into(target, self.who)
        transport = self._transport
        assert transport is not None
        try:
            reply = await transport.send(target.url, target.headers, body, timeout)
        except TransportError as error:
            raise await self._finder.lost_error(error)  # noqa: B904 -- it has a cause of its own
        sent.times = reply.sends
        if not _OK <= reply.status < _NO_LONGER_OK:
            raise await self._refused(reply, target)
        return reply

    async def _refused(self, reply: TransportReply, target: Target) -> Exception:
        """Return the error for an unsuccessful reply."""
        try:
            data = await self._read(reply, _MOST_OF_AN_ERROR)
        except (TransportError, ModelError):
            data = b""  # the status is enough
        finally:
            reply.drop()
        return await self._finder.status_error(
            reply.status, reply.headers, without_keys(data, target.headers)
        )

    async def _find(self) -> Target:
        try:
            target = await self._finder.find()
            check_url(target.url)
        except TransportError as error:
            raise await self._finder.lost_error(error)  # noqa: B904 -- it has a cause of its own
        check_headers(self.who, target.headers)
        if self._transport is None:
            self._transport = self._transport_to(target.url)
        self._target = target
        return target

    async def _read(self, reply: TransportReply, most: int) -> bytes:
        pieces: list[bytes] = []
        size = 0
        while not reply.is_at_end:
            try:
                piece = await reply.next_piece()
            except Exception as problem:  # noqa: BLE001 -- as above
                raise _of_transport(reply, problem) from None
            size += len(piece)
            if size > most:
                raise self._too_large()
            pieces.append(piece)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def _too_large(self) -> ModelError:
        msg = (
            f"{self.who}: the reply is larger than {self._most_bytes:,} bytes, and was "
            "discarded. If that is intended, pass a larger max_reply_bytes to the model."
        )
        return ModelError(msg, kind="malformed")


def _of_transport(reply: TransportReply, problem: Exception) -> Exception:
    """Return the error to raise: the transport's own may contain the headers."""
    return reply.error(problem) or problem


async def _to_the_end(reply: TransportReply) -> None:
    """Read a reply to the end, so that its connection can be reused.

    That is not worth a long wait.
    """
    if not reply.is_at_end:
        with suppress(Exception):
            async with asyncio.timeout(_SECONDS_TO_THE_END):
                while not reply.is_at_end:
                    await reply.next_piece()
