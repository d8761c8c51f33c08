"""One connection to an MCP server, for all runs of a system.

Everything that the SDK opens must be closed by the task that has opened it: so one task owns the
connection, and others make requests through it. When it is lost, the next request reopens it; calls
in progress fail, although the server may have done them. A tool call is never repeated
automatically.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

from ..errors import ToolError, UsageError, text_of
from ..log import loggers

__all__ = ["Connection", "Elicitation", "McpServer", "need_mcp"]

_MOST_TOOLS: Final = 1000
_MOST_PAGES: Final = 100
_TO_CLOSE: Final = 10.0
"""Seconds that a server has to let its connection be closed."""

_SHORTEST_SECRET: Final = 6
"""Characters. A shorter value, such as a flag or a number, occurs in many texts by chance."""

Answer = Callable[["Elicitation"], Awaitable[Any]]
_asking: Final[ContextVar[Answer | None]] = ContextVar("offbook_mcp_call", default=None)


def need_mcp(what: str) -> None:
    """Raise UsageError if the SDK is not installed."""
    try:
        import_module("mcp.client.client")
    except ImportError as error:
        msg = f"{what} needs the package mcp, version 2 or newer: pip install 'offbook[mcp]'."
        raise UsageError(msg) from error


@dataclass(frozen=True, slots=True, repr=False)
class McpServer:
    """The location of a server: a command that is started here, or a URL.

    Its text names the program or the host alone: arguments, paths and queries may contain keys.
    """

    command: tuple[str, ...] = ()
    env: Mapping[str, str] | None = None
    cwd: str | None = None
    url: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    connect_timeout: float = 30.0
    timeout: float | None = 300.0
    mode: str = "auto"
    """The version of the protocol, as the SDK names it: for those before 2026, "legacy"."""

    def __str__(self) -> str:
        return (
            "the MCP server "
            f"{_host_of(self.url) if self.url else os.path.basename(self.command[0])!r}"  # noqa: PTH119 -- no path is made of it
        )

    __repr__ = __str__

    def without_secrets(self, text: str) -> str:
        """Return a text without this server's secrets: URL, arguments, variables and headers."""
        for secret in sorted(self._secrets(), key=len, reverse=True):
            text = text.replace(secret, "…")
        return text

    def _secrets(self) -> set[str]:
        given = [*self.command[1:], *(self.env or {}).values(), *self.headers.values()]
        pieces = {
            piece for one in given for piece in (one, one.partition("=")[2], one.rpartition(" ")[2])
        }
        if self.url:
            parts = urlsplit(self.url)
            queries = (value for pair in parse_qsl(parts.query) for value in pair)
            pieces |= {
                self.url,
                parts.path,
                parts.query,
                parts.password or "",
                parts.netloc.rpartition("@")[0],
                *queries,
            }
        return {piece for piece in pieces if len(piece) >= _SHORTEST_SECRET}


def _host_of(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


@dataclass(frozen=True, slots=True)
class Elicitation:
    """A question of a server during a call."""

    message: str
    schema: Mapping[str, Any] | None
    url: str | None


class Connection:
    """One connection, on one loop."""

    def __init__(self, server: McpServer) -> None:
        self._server = server
        self._task: asyncio.Task[None] | None = None
        self._ready: asyncio.Future[Any] | None = None  # the client, when it is connected
        self._over = asyncio.Event()  # set to end the current task
        self._tools: tuple[Any, ...] | None = None  # None: not loaded
        self._calls: list[Answer] = []  # the handlers of calls in progress
        self._is_closed = False

    async def tools(self) -> tuple[Any, ...]:
        """Return the current tools of the server: the same tuple until they change."""
        for attempt in (1, 2):
            client = await self._client()
            if self._tools is not None:
                return self._tools
            try:
                self._tools = found = await self._list(client)
            except Exception as error:
                await self._lose(client)
                if attempt == 2 or not _is_lost(error):  # noqa: PLR2004 -- the second one
                    raise self._error("did not list its tools", error) from error
            else:
                return found
        raise AssertionError

    async def call(
        self,
        name: str,
        arguments: dict[str, Any],
        progress: Callable[..., Awaitable[None]],
        answer: Answer,
    ) -> Any:
        """Call a tool. A question of the server is passed to `answer`."""
        client = await self._client()
        self._calls.append(answer)
        token = _asking.set(answer)
        try:
            return await client.call_tool(name, arguments, progress_callback=progress)
        except Exception as error:
            if _is_lost(error):
                await self._lose(client)
                lost = (
                    f"lost its connection while it ran {name!r}. The tool may have completed: "
                    "check before you call it again. The error"
                )
                raise self._error(lost, error) from error
            raise self._error(
                f"refused {name!r}"
                if type(error).__name__ == "MCPError"
                else f"failed at {name!r}",
                error,
            ) from error
        finally:
            _asking.reset(token)
            self._calls.remove(answer)

    async def aclose(self) -> None:
        self._is_closed = True
        await self._end()

    # ---- the connection

    async def _client(self) -> Any:
        """Return the connected client. Of several concurrent callers, one connects."""
        if self._is_closed:
            msg = (
                f"{self._server} is closed. Use it within its `async with`, and while its actor "
                "system is running."
            )
            raise UsageError(msg)
        if self._ready is None or self._task is None or self._task.done():
            self._over, self._tools = asyncio.Event(), None
            self._ready = asyncio.get_running_loop().create_future()
            self._task = asyncio.get_running_loop().create_task(
                self._hold(self._ready, self._over), name=f"connection to {self._server}"
            )
        return await asyncio.shield(self._ready)

    async def _hold(self, ready: asyncio.Future[Any], over: asyncio.Event) -> None:
        try:
            async with contextlib.AsyncExitStack() as stack:
                client = await self._connect(stack)
                if not ready.done():
                    ready.set_result(client)
                await over.wait()
        except asyncio.CancelledError:
            raise
        except (Exception, BaseExceptionGroup) as error:  # noqa: BLE001 -- the waiting caller receives it
            if not ready.done():
                ready.set_exception(self._error("cannot be used", error))
            else:
                loggers.mcp.info(
                    "%s: the connection was lost: %s",
                    self._server,
                    self._server.without_secrets(_said(error)),
                )
        finally:
            if not ready.done():
                ready.cancel()
            elif not ready.cancelled():
                ready.exception()  # avoids a warning if no caller has received it
            self._tools = None

    async def _connect(self, stack: contextlib.AsyncExitStack) -> Any:
        need_mcp("McpTools")
        from mcp.client.client import Client  # noqa: PLC0415 -- an extra, which only who uses it needs

        client = Client(
            await self._transport(stack),
            read_timeout_seconds=self._server.timeout,
            elicitation_callback=self._elicited,
            message_handler=self._message,
            cache=None,
            mode=self._server.mode,
        )
        async with asyncio.timeout(self._server.connect_timeout):
            await stack.enter_async_context(client)
        # Newer versions announce changes of the list only to listeners.
        if client.protocol_version >= "2026":
            listening = asyncio.get_running_loop().create_task(self._listen(client))
            stack.push_async_callback(_ended, listening)
        return client

    async def _transport(self, stack: contextlib.AsyncExitStack) -> Any:
        server = self._server
        if server.url is None:
            from mcp.client.stdio import StdioServerParameters  # noqa: PLC0415 -- as above

            env = None if server.env is None else dict(server.env)
            return StdioServerParameters(
                command=server.command[0], args=list(server.command[1:]), env=env, cwd=server.cwd
            )
        from mcp.client.streamable_http import streamable_http_client  # noqa: PLC0415 -- as above
        from mcp.shared._httpx_utils import create_mcp_http_client  # noqa: PLC0415 -- as above

        http = await stack.enter_async_context(create_mcp_http_client(headers=dict(server.headers)))
        return streamable_http_client(server.url, http_client=http)

    async def _lose(self, client: Any) -> None:
        """End the connection of that client, unless another one has replaced it."""
        ready = self._ready
        if (
            ready is not None
            and ready.done()
            and not ready.cancelled()
            and ready.exception() is None
            and ready.result() is client
        ):
            await self._end()

    async def _end(self) -> None:
        task, self._task, self._ready = self._task, None, None
        if task is None:
            return
        self._over.set()
        done, _ = await asyncio.wait((task,), timeout=_TO_CLOSE)
        if not done:
            task.cancel()
            await asyncio.wait((task,))

    # ---- messages of the server

    async def _list(self, client: Any) -> tuple[Any, ...]:
        found: list[Any] = []
        cursor: str | None = None
        for _ in range(_MOST_PAGES):
            page = await client.list_tools(cursor=cursor)
            found += page.tools
            cursor = page.next_cursor
            if len(found) > _MOST_TOOLS:
                msg = (
                    f"{self._server} offers more than {_MOST_TOOLS:,} tools, which is the limit. "
                    "Choose some with tools=."
                )
                raise ToolError(msg)
            if cursor is None:
                return tuple(found)
        msg = (
            f"{self._server} returns a list of tools without an end. This is a fault of the "
            "server: each page has a next cursor."
        )
        raise ToolError(msg)

    async def _listen(self, client: Any) -> None:
        # The server does not announce changes, or the connection is lost, which the next call
        # detects.
        with contextlib.suppress(Exception):
            async with client.listen(tools_list_changed=True) as changes:
                async for _ in changes:
                    self._tools = None

    async def _message(self, message: Any) -> None:
        if (
            type(message).__name__ == "ToolListChangedNotification"
            or type(getattr(message, "root", None)).__name__ == "ToolListChangedNotification"
        ):
            self._tools = None

    async def _elicited(self, context: Any, params: Any) -> Any:  # noqa: ARG002 -- the SDK's names
        """Pass a question to the call that it belongs to.

        Newer versions of the protocol identify the call; with older ones it is known only if there
        is just one.
        """
        from mcp.types import ElicitResult  # noqa: PLC0415 -- an extra, which only who uses it needs

        answer = _asking.get()
        if answer is None:
            if len(self._calls) != 1:
                loggers.mcp.info(
                    "%s asks a question during %d calls without naming its call, so the question "
                    "is declined.",
                    self._server,
                    len(self._calls),
                )
                return ElicitResult(action="decline")
            answer = self._calls[0]
        said = await answer(
            Elicitation(
                params.message,
                getattr(params, "requested_schema", None),
                getattr(params, "url", None),
            )
        )
        if said is None or said is False:
            return ElicitResult(action="decline")
        return ElicitResult(action="accept", content=said if isinstance(said, dict) else None)

    def _error(self, what: str, error: BaseException) -> ToolError:
        return ToolError(f"{self._server} {what}: {self._server.without_secrets(_said(error))}")


async def _ended(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.wait((task,))


def _is_lost(error: BaseException) -> bool:
    """Return whether the connection is gone, and not only one request failed."""
    if isinstance(error, BaseExceptionGroup):
        return any(map(_is_lost, error.exceptions))
    if type(error).__name__ == "MCPError":
        return (
            getattr(getattr(error, "error", None), "code", 0) == _CONNECTION_CLOSED
            or "session" in str(error).lower()
        )
    return isinstance(error, OSError) or type(error).__module__.partition(".")[0] in (
        "anyio",
        "httpx2",
        "httpcore2",
        "httpx",
    )


_CONNECTION_CLOSED: Final = -32000


def _said(error: BaseException) -> str:
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    if isinstance(error, BaseExceptionGroup):
        return "; ".join(_said(one) for one in error.exceptions)
    if isinstance(error, TimeoutError):
        return "it has not answered in time"
    if isinstance(error, FileNotFoundError):
        return f"the program {error.filename!r} does not exist. Install it, or correct command="
    return (
        f"{type(error).__name__}: {text_of(error)}"
        if isinstance(error, Exception)
        else type(error).__name__
    )
