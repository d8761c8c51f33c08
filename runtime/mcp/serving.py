"""An agent as a tool of whatever speaks MCP: an editor, a desktop, another agent.

Owns: the tool, and what it answers. Each call is a run of its own, or a turn of a conversation that the caller names; a call that its client cancels cancels
its run. It must never write to the standard output by itself: there the protocol is spoken.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from ..data.run_result import RunStatus
from ..errors import UsageError, text_of
from ..runner import Runner
from ..stores import MemoryStore
from .connection import need_mcp

if TYPE_CHECKING:
    from ..run.run import Run
    from ..stores import JournalStore

__all__ = ["mcp_server", "serve_mcp"]

_NOT_IN_A_NAME: Final = re.compile(r"[^A-Za-z0-9_-]")


def mcp_server(agent: Any, *, store: JournalStore | None = None) -> Any:
    """An `MCPServer` of the SDK with one tool, `ask_<name>`, which runs an agent, or the agent of a Runner."""
    need_mcp("mcp_server()")
    from mcp.server.mcpserver import Context, MCPServer  # noqa: PLC0415 -- an extra, which only who uses it needs
    from mcp.server.mcpserver.exceptions import ToolError  # noqa: PLC0415 -- as above

    runner = agent if isinstance(agent, Runner) else Runner(agent, store=store or MemoryStore())
    if agent is runner and store is not None:
        raise UsageError("mcp_server(store=...): what a Runner keeps, and where, is said where it is made.")
    name, description = runner.agent.name, runner.agent.description

    async def ask(request: str, ctx: Context, conversation: str | None = None) -> str:
        if conversation is None:
            run = runner.query(request)
        else:
            if runner.store is None:
                raise ToolError("this agent has no store: leave conversation out.")
            run = runner.session(conversation).query(request)
        return await _answer(run, ctx, ToolError)

    server = MCPServer(f"understudy: {name}", instructions=description or None)
    ask.__annotations__ = {"request": str, "ctx": Context, "conversation": str | None, "return": str}  # the SDK cannot find what is imported here by its name
    ask.__doc__ = f"{description or f'Asks the agent {name}.'} With the same `conversation`, it remembers what was said before."
    server.add_tool(ask, name=f"ask_{_NOT_IN_A_NAME.sub('_', name)}"[:64], description=ask.__doc__)
    return server


async def _answer(run: Run, ctx: Any, failed: type[Exception]) -> str:
    steps = 0
    try:
        async for event in run:
            if event.delta is None and event.message is not None:
                steps += 1
                await ctx.report_progress(steps, None, str(event)[:_LONGEST_WORD])
        result = await run
    finally:
        await run.aclose()
    if result.status is RunStatus.INTERRUPTED:
        asked = "; ".join(str(one.info) for one in result.interrupts if one.is_root_cause)
        msg = f"it waits for an answer that cannot be given here: {asked}. Its checkpoint is {run.checkpoint_id!r}."
        raise failed(msg)
    if result.error is not None:
        msg = f"{type(result.error).__name__}: {text_of(result.error)}"
        raise failed(msg) from result.error
    return result.text


_LONGEST_WORD: Final = 500


def serve_mcp(agent: Any, *, store: JournalStore | None = None, http: tuple[str, int] | None = None) -> None:
    """Serve until the client has gone (over the standard input and output), or until the process is told to end (over streamable HTTP)."""
    server = mcp_server(agent, store=store)
    if http is None:
        server.run("stdio")
    else:
        server.run("streamable-http", host=http[0], port=http[1])
