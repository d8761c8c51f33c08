"""The subcommands of `understudy`, and their options.

Owns: names, options and help texts. What a command does is in a file of its own.
"""

from __future__ import annotations

from typing import Annotated

import typer

from ..errors import UnderstudyError
from .mcp_serving import serve_tool
from .serving import ServeOptions
from .serving import serve as serve_agent

__all__ = ["app", "serve"]

app = typer.Typer(name="understudy", help="Agents that are actors.", no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)


@app.callback()
def _commands() -> None:
    """Agents that are actors."""


@app.command()
def serve(
    target: Annotated[str, typer.Argument(metavar="FILE_OR_MODULE[:AGENT]", help="Where the agent is: agents.py:weather. Without a name, its `agent`.")],
    host: Annotated[str, typer.Option(help="The address to listen at.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65_535, help="The port; 0: any that is free.")] = 9999,
    store: Annotated[str | None, typer.Option(metavar="URL", help="Where tasks are kept: a file, redis://…, postgresql://… Without it, in memory.")] = None,
    token_env: Annotated[str | None, typer.Option(metavar="NAME", help="The environment variable that holds the token which clients have to send.")] = None,
    grpc: Annotated[bool, typer.Option("--grpc", help="Serve gRPC as well.")] = False,  # noqa: FBT002 -- an option of a command
    grpc_port: Annotated[int, typer.Option(min=0, max=65_535, help="The port for gRPC.")] = 50051,
    allow_anonymous: Annotated[bool, typer.Option("--allow-anonymous", help="Let everybody in who can reach the address.")] = False,  # noqa: FBT002
    mcp: Annotated[bool, typer.Option("--mcp", help="Serve it as a tool over the Model Context Protocol, on standard input and output.")] = False,  # noqa: FBT002
    mcp_http: Annotated[bool, typer.Option("--mcp-http", help="The same, over streamable HTTP.")] = False,  # noqa: FBT002
    debug: Annotated[bool, typer.Option("--debug", help="Show where an error comes from.")] = False,  # noqa: FBT002
) -> None:
    """Serve an agent over Agent2Agent, or with --mcp as a tool."""
    try:
        if mcp or mcp_http:
            serve_tool(ServeOptions(target, host, port, store, token_env, grpc, grpc_port, allow_anonymous), http=mcp_http)
            return
        serve_agent(ServeOptions(target, host, port, store, token_env, grpc, grpc_port, allow_anonymous), typer.echo)
    except KeyboardInterrupt:
        raise typer.Exit(130) from None
    except UnderstudyError as error:
        if debug:
            raise
        typer.echo(f"understudy: {_one_line(error)}", err=True)
        raise typer.Exit(1) from None
    except Exception as error:
        if debug:
            raise
        typer.echo(f"understudy: {type(error).__name__}: {_one_line(error)} (--debug shows where)", err=True)
        raise typer.Exit(1) from None


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
