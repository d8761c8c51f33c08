"""An agent as a tool for MCP clients: an editor, a desktop, another agent.

Each call is a separate run, or a turn of a conversation that the caller names; a call that its
client cancels cancels its run. Nothing here writes to the standard output, which carries the
protocol.
"""

from __future__ import annotations

import re
from hashlib import sha256
from secrets import token_hex
from typing import TYPE_CHECKING, Any, Final

from ..data.run_result import RunStatus
from ..errors import UsageError
from ..loopback import LoopbackGate
from ..runner import Runner
from ..stores import MemoryStore
from .connection import need_mcp

if TYPE_CHECKING:
    from ..run.run import Run
    from ..stores import JournalStore

__all__ = ["mcp_app", "mcp_server", "serve_mcp"]

_NOT_IN_A_NAME: Final = re.compile(r"[^A-Za-z0-9_-]")


def mcp_server(agent: Any, *, store: JournalStore | None = None) -> Any:
    """Return an `MCPServer` of the SDK with one tool, `ask_<name>`, which runs an agent.

    `agent` may also be a Runner.
    """
    need_mcp("mcp_server()")
    from mcp.server.mcpserver import Context, MCPServer  # noqa: PLC0415 -- an extra, which only who uses it needs
    from mcp.server.mcpserver.exceptions import ToolError  # noqa: PLC0415 -- as above

    runner = agent if isinstance(agent, Runner) else Runner(agent, store=store or MemoryStore())
    if agent is runner and store is not None:
        raise UsageError(
            "mcp_server(store=...): a Runner has its own store. Omit store=, and pass it to the "
            "Runner."
        )
    name, description = runner.agent.name, runner.agent.description

    async def ask(request: str, ctx: Context, conversation: str | None = None) -> str:
        if conversation is None:
            run = runner.query(request)
        else:
            if runner.store is None:
                raise ToolError("conversation must be omitted, because this agent has no store.")
            run = runner.session(_session_of(ctx, conversation)).query(request)
        return await _answer(run, ctx, ToolError)

    server = MCPServer(f"offbook: {name}", instructions=description or None)
    # The SDK cannot resolve the names of local imports.
    ask.__annotations__ = {
        "request": str,
        "ctx": Context,
        "conversation": str | None,
        "return": str,
    }
    ask.__doc__ = (
        f"{description or f'Asks the agent {name}.'} With the same `conversation`, it remembers "
        "what was said before."
    )
    server.add_tool(ask, name=f"ask_{_NOT_IN_A_NAME.sub('_', name)}"[:64], description=ask.__doc__)
    return server


def _session_of(ctx: Any, conversation: str) -> str:
    """Return the session id for this client's conversation of that name.

    No client can name a session of the store, or of another client. A client is the authenticated
    user, or else the MCP session; over standard input and output there is one.
    """
    from mcp.server.auth.middleware.auth_context import get_access_token  # noqa: PLC0415 -- an extra, which only who uses it needs

    token = get_access_token()
    request = ctx.request_context.request  # None for standard input and output
    if token is not None:
        client = f"user {token.client_id} {getattr(token, 'subject', None) or ''}"
    else:
        # Not the session's id: a request without a session could name any. Such a request is a
        # client by itself.
        client = "" if request is None else f"session {_mark_of(ctx.session)}"
    return f"mcp:{sha256(client.encode()).hexdigest()[:32]}:{conversation}"


def _mark_of(session: Any) -> str:
    """Return a mark that identifies a session of this process, and that no client can guess."""
    mark: str | None = getattr(session, "offbook_mark", None)
    if mark is None:
        mark = session.offbook_mark = token_hex(16)
    return mark


async def _answer(run: Run, ctx: Any, failed: type[Exception]) -> str:
    steps = 0
    try:
        async for event in run:
            if event.delta is None and event.message is not None:
                steps += 1
                # Tool calls and results are private to the agent.
                said = event.message.text if event.message.role == "assistant" else ""
                await ctx.report_progress(steps, None, said[:_LONGEST_WORD] or None)
        result = await run
    finally:
        await run.aclose()
    if result.status is RunStatus.INTERRUPTED:
        msg = (
            f"The agent waits for an answer that this call cannot pass. Answer its run {run.id} "
            "in the program that serves it."
        )
        raise failed(msg)
    if result.error is not None:
        msg = f"The agent has failed. The log of the server has the reason, under run {run.id}."
        raise failed(msg) from result.error
    return result.text


_LONGEST_WORD: Final = 500


def serve_mcp(
    agent: Any,
    *,
    store: JournalStore | None = None,
    http: tuple[str, int] | None = None,
    allow_anonymous: bool = False,
) -> None:
    """Serve until the client disconnects (over the standard input and output), or until the process
    is terminated (over streamable HTTP).

    Over HTTP, an address of this machine refuses other host names and pages of other origins,
    unless `allow_anonymous` is set.
    """
    server = mcp_server(agent, store=store)
    if http is None:
        server.run("stdio")
        return
    import uvicorn  # noqa: PLC0415 -- an extra, which the SDK brings

    host, port = http
    uvicorn.run(
        mcp_app(server, host, allow_anonymous=allow_anonymous),
        host=host,
        port=port,
        log_level="warning",
    )


def mcp_app(server: Any, host: str, *, allow_anonymous: bool = False) -> Any:
    """Return the ASGI app of an MCP server over streamable HTTP, as it is served at that host."""
    from mcp.server.transport_security import TransportSecuritySettings  # noqa: PLC0415 -- an extra

    # The gate checks the same, as for the other servers.
    open_to_all = TransportSecuritySettings(enable_dns_rebinding_protection=False)
    app = server.streamable_http_app(host=host, transport_security=open_to_all)
    return (
        app
        if allow_anonymous
        else LoopbackGate(app, "Start it with --allow-anonymous to answer all.")
    )
