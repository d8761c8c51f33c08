"""The tools of an MCP server, for an agent.

The connection belongs to an `async with` block, or to the system in which the agent runs. Nothing
of a run is stored here.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, cast

from ...runtime.actor.actor import Actor
from ...runtime.errors import UsageError
from ...runtime.log import loggers
from ...runtime.mcp.connection import Connection, McpServer
from ..tools.tool import Approval, Tool, Toolset
from .mcp_tool import McpTool, shown_name

if TYPE_CHECKING:
    from ...runtime.actor.host import Host
    from ...runtime.system.system import ActorSystem

__all__ = ["McpTools"]


class McpTools(Toolset):
    """The tools of an MCP server.

        tools=[McpTools(command=["npx", "server"])]
        tools=[McpTools(url="https://host/mcp", headers={...})]

    The system in which the agent runs has one connection for all its runs. It is opened when the
    first run needs it, and reopened after it is lost. Within `async with McpTools(...) as tools:`
    the connection belongs to the block instead, and problems with the server are reported at once.

    `tools` selects the agent's tools: a list of the server's names, or a function of a name.

    `needs_approval` is True for all tools, a list of names, or a function of context and arguments.
    Each name must exist, as the server's own or as the one that the model sees. If names are
    listed, tools that the server adds or renames later need approval, too.

    A call may take `timeout` seconds.
    """

    def __init__(
        self,
        *,
        command: Sequence[str] | None = None,
        url: str | None = None,
        headers: Mapping[str, str] | None = None,
        env: Mapping[str, str] | None = None,
        cwd: str | os.PathLike[str] | None = None,
        tools: Collection[str] | Callable[[str], bool] | None = None,
        needs_approval: Approval | Collection[str] = False,
        timeout: float | None = 300.0,
        connect_timeout: float = 30.0,
    ) -> None:
        if (command is None) == (url is None):
            msg = "McpTools: pass either command= (started in this process) or url=, and not both."
            raise UsageError(msg)
        if command is not None and (
            isinstance(command, str)
            or not command
            or not all(isinstance(word, str) for word in command)
        ):
            msg = (
                "McpTools: command must be a list of strings, such as ['python', 'server.py'], "
                f"got {type(command).__name__}."
            )
            raise UsageError(msg)
        if url is not None and (
            not isinstance(url, str) or not url.startswith(("http://", "https://"))
        ):
            msg = (
                "McpTools: url must be the http(s) URL of a server that speaks streamable HTTP, "
                "such as 'http://localhost:8000/mcp'."
            )
            raise UsageError(msg)
        if command is not None and headers:
            msg = (
                "McpTools(headers=...): headers apply only to a server at a url=. For one that "
                "command= starts, pass env= instead."
            )
            raise UsageError(msg)
        if isinstance(tools, str):
            msg = (
                f"McpTools: tools must be a list of names, or a function of a name, got {tools!r}."
            )
            raise UsageError(msg)
        for name, seconds in (("timeout", timeout), ("connect_timeout", connect_timeout)):
            if seconds is not None and not seconds > 0:
                msg = f"McpTools: {name} must be a number of seconds above 0, got {seconds!r}."
                raise UsageError(msg)
        if isinstance(needs_approval, str) or not (
            isinstance(needs_approval, bool | Collection) or callable(needs_approval)
        ):
            msg = (
                f"McpTools(needs_approval={needs_approval!r}): needs_approval must be a bool, a "
                "collection of names, or a function of context and arguments."
            )
            raise UsageError(msg)
        where = None if cwd is None else os.fspath(cwd)
        self._server = McpServer(
            tuple(command or ()), env, where, url, dict(headers or {}), connect_timeout, timeout
        )
        self._filter = tools
        self._approval = (
            needs_approval
            if isinstance(needs_approval, bool) or callable(needs_approval)
            else frozenset(needs_approval)
        )
        # The tools that existed when the names were checked.
        self._judged: frozenset[str] | None = None
        self._timeout = timeout
        self.asks_approval = bool(needs_approval)
        self._own: _Tools | None = None  # within `async with`

    def __repr__(self) -> str:
        return f"<McpTools of {self._server}>"

    async def __aenter__(self) -> Self:
        if self._own is not None:
            msg = (
                f"{self!r} has been entered already. Use it within that `async with`, or make "
                "another McpTools."
            )
            raise UsageError(msg)
        self._own = _Tools(self)
        try:
            await self._own.now()
        except BaseException:
            await self.__aexit__(None, None, None)
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        own, self._own = self._own, None
        if own is not None:
            await own.connection.aclose()

    async def tools_in(self, system: Host) -> Sequence[Tool]:
        return await (self._own or self._of(system)).now()

    def _of(self, system: Host) -> _Tools:
        known = cast("dict[McpTools, _Tools]", system.belongings.setdefault(McpTools, {}))
        found = known.get(self)
        if found is None:
            found = known[self] = _Tools(self)
            cast("ActorSystem", system).spawn(
                _Keeper, found.connection, lambda: known.pop(self, None)
            )
        return found

    def made(self, connection: Connection, given: Sequence[Any]) -> tuple[Tool, ...]:
        """Return the agent's tools, of those that the server offers."""
        names = {one.name for one in given}
        wanted = self._filter
        if wanted is not None and not callable(wanted) and (missing := sorted(set(wanted) - names)):
            msg = (
                f"{self._server} has no tool {missing[0]!r}. Its tools: "
                f"{', '.join(sorted(names)) or 'none'}."
            )
            raise UsageError(msg)
        self._check_approval(names)
        chosen = [
            one
            for one in given
            if wanted is None or (wanted(one.name) if callable(wanted) else one.name in wanted)
        ]
        return tuple(
            McpTool(connection, one, self._approval_of(one.name), self._timeout) for one in chosen
        )

    def _check_approval(self, names: set[str]) -> None:
        """Check the names of the tools that need approval.

        Raises `UsageError` if a name never was that of a tool.
        """
        approval = self._approval
        if isinstance(approval, bool) or callable(approval):
            return
        missing = sorted(approval.difference(names, map(shown_name, names)))
        if self._judged is None:
            if missing:
                msg = (
                    f"McpTools(needs_approval=...): {self._server} has no tool {missing[0]!r}. "
                    f"Its tools: {', '.join(sorted(names)) or 'none'}."
                )
                raise UsageError(msg)
            self._judged = frozenset(names)
        elif missing:
            loggers.mcp.warning(
                "%s no longer has %s, which needs approval. Tools that it has added or "
                "renamed since need approval, too.",
                self._server,
                missing,
            )

    def _approval_of(self, name: str) -> Approval:
        approval = self._approval
        if isinstance(approval, bool) or callable(approval):
            return approval
        return (
            shown_name(name) in map(shown_name, approval)
            or self._judged is None
            or name not in self._judged
        )


class _Tools:
    """The connection of one system, and the tools made from the server's list."""

    def __init__(self, of: McpTools) -> None:
        self._of = of
        self.connection = Connection(of._server)
        self._listed: tuple[Any, ...] | None = None
        self._made: tuple[Tool, ...] = ()

    async def now(self) -> tuple[Tool, ...]:
        listed = await self.connection.tools()
        if listed is not self._listed:
            self._made = self._of.made(self.connection, listed)
            self._listed = listed
        return self._made


class _Keeper(Actor):
    """Lives as long as its system, and closes the connection when the system ends."""

    def __init__(self, connection: Connection, forget: Callable[[], object]) -> None:
        super().__init__()
        self._connection = connection
        self._forget = forget

    async def on_stop(self) -> None:  # type: ignore[override]  # a hook may be a coroutine
        self._forget()
        await self._connection.aclose()
