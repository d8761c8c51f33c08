"""An MCP server of the SDK's, for tests: `stdio`, or `http PORT`.

Its tools answer, ask, tell how far they are, hang, die and flood.
"""

import asyncio
import os
import sys
from pathlib import Path
from typing import Annotated

from mcp.server.mcpserver import Context, Elicit, ElicitationResult, Image, MCPServer, Resolve
from pydantic import BaseModel

server = MCPServer("tests")


class Size(BaseModel):
    size: str


@server.tool()
def add(a: int, b: int = 1) -> int:
    """Adds two numbers."""
    return a + b


@server.tool()
def picture() -> list:
    """A picture, and a word about it."""
    return ["a dot", Image(data=b"\x89PNG dot", format="png")]


@server.tool()
def fail() -> str:
    """Fails."""
    raise ValueError("no more paper")


@server.tool()
def pid() -> int:
    """The number of this process."""
    return os.getpid()


@server.tool()
def headers(ctx: Context) -> str:
    """What the client has sent."""
    return str(ctx.headers.get("x-tenant"))


@server.tool()
async def far(ctx: Context) -> str:
    """Tells how far it is."""
    for step in (1, 2, 3):
        await ctx.report_progress(step, 3, f"step {step}")
        await asyncio.sleep(0.05)
    return "there"


@server.tool()
async def flood(ctx: Context) -> str:
    """Tells more than anybody can hear."""
    for step in range(3000):
        await ctx.report_progress(step, 3000, "x" * 100)
    return "over"


async def which_size() -> Elicit[Size]:
    return Elicit("Which size?", Size)


@server.tool()
async def order(size: Annotated[ElicitationResult[Size], Resolve(which_size)]) -> str:
    """Asks for a size."""
    return f"{size.action} {size.data.size if size.action == 'accept' else ''}"


@server.tool()
async def hang() -> str:
    """Never answers."""
    try:
        await asyncio.Event().wait()
    finally:
        print("cancelled", file=sys.stderr, flush=True)


@server.tool()
def die() -> str:
    """Ends the server."""
    os._exit(3)


@server.tool()
async def grow(ctx: Context) -> str:
    """Has one tool more from now on."""

    def grown() -> str:
        return "grown"

    server.add_tool(grown)
    await ctx.notify_tools_changed()
    return "done"


@server.tool(name="file.delete")
def delete(path: str, force: bool = False) -> str:
    """Deletes a file."""
    return f"deleted {path} {force}"


@server.tool()
async def rename(ctx: Context) -> str:
    """Calls its tool for deleting otherwise from now on."""
    server.remove_tool("file.delete")
    server.add_tool(delete, name="remove")
    await ctx.notify_tools_changed()
    return "done"


def recipients() -> list[str]:
    """To whom it pays: the first line of a file, which others change."""
    return Path(os.environ["RECIPIENTS"]).read_text().split()


async def is_sure() -> Elicit[Size]:
    return Elicit(f"Pay {' '.join(recipients())}?", Size)


@server.tool()
async def transfer(size: Annotated[ElicitationResult[Size], Resolve(is_sure)]) -> str:
    """Pays, if its user is sure."""
    return f"{size.action}: paid {' '.join(recipients())}"


if sys.argv[1] == "stdio":
    server.run("stdio")
else:
    server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[2]), stateless_http=False)
