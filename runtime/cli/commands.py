"""The subcommands of `understudy`, and their options.

Owns: names, options and help texts. What a command does is in a file of its own.
"""

from __future__ import annotations

from typing import Annotated

import typer

from .conversation import RunOptionsGiven, converse
from .demo import list_demos, play_demo
from .guarded import guarded
from .mcp_serving import serve_tool
from .service_commands import add_service_commands
from .serving import ServeOptions
from .serving import serve as serve_agent
from .store_commands import add_store_commands

__all__ = ["app", "demo", "run", "serve"]

app = typer.Typer(name="understudy", help="Agents that are actors.", no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)

_Debug = Annotated[bool, typer.Option("--debug", help="Show where an error comes from.")]
_Target = Annotated[str, typer.Argument(metavar="FILE_OR_MODULE[:AGENT]", help="Where the agent is: agents.py:weather. Without a name, its `agent`.")]
_Store = Annotated[str | None, typer.Option(metavar="URL", help="Where runs are kept: a file, redis://…, postgresql://…")]
_Json = Annotated[bool, typer.Option("--json", help="One line of JSON for each event.")]


@app.callback()
def _commands() -> None:
    """Agents that are actors."""


@app.command()
def run(
    target: _Target,
    text: Annotated[str | None, typer.Argument(metavar="[TEXT]", help="One message. Without it, a conversation.")] = None,
    session: Annotated[str | None, typer.Option(metavar="ID", help="The conversation to go on with, which is kept in the store.")] = None,
    resume: Annotated[str | None, typer.Option(metavar="ID", help="A run that waits for an answer, or was cancelled: it goes on first.")] = None,
    store: _Store = None,
    as_json: _Json = False,  # noqa: FBT002 -- an option of a command
    debug: _Debug = False,  # noqa: FBT002
) -> None:
    """Talk with an agent, or send it one message."""
    guarded(lambda: converse(RunOptionsGiven(target, text, session, resume, store, as_json)), debug=debug)


@app.command()
def demo(
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="Which one; without it, a team whose process is killed in the middle.")] = None,
    list_all: Annotated[bool, typer.Option("--list", help="Which there are.")] = False,  # noqa: FBT002 -- an option of a command
    pace: Annotated[float, typer.Option(min=0.05, max=10, help="How slow its models are.")] = 1.0,
    debug: _Debug = False,  # noqa: FBT002
) -> None:
    """See agents at work: with replies that are written down, without a key and without a network."""
    guarded(lambda: list_demos() if list_all else play_demo(name, pace), debug=debug)


@app.command()
def serve(
    target: _Target,
    host: Annotated[str, typer.Option(help="The address to listen at.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65_535, help="The port; 0: any that is free.")] = 9999,
    store: Annotated[str | None, typer.Option(metavar="URL", help="Where tasks are kept: a file, redis://…, postgresql://… Without it, in memory.")] = None,
    token_env: Annotated[str | None, typer.Option(metavar="NAME", help="The environment variable that holds the token which clients have to send.")] = None,
    grpc: Annotated[bool, typer.Option("--grpc", help="Serve gRPC as well.")] = False,  # noqa: FBT002 -- an option of a command
    grpc_port: Annotated[int, typer.Option(min=0, max=65_535, help="The port for gRPC.")] = 50051,
    allow_anonymous: Annotated[bool, typer.Option("--allow-anonymous", help="Let everybody in who can reach the address.")] = False,  # noqa: FBT002
    mcp: Annotated[bool, typer.Option("--mcp", help="Serve it as a tool over the Model Context Protocol, on standard input and output.")] = False,  # noqa: FBT002
    mcp_http: Annotated[bool, typer.Option("--mcp-http", help="The same, over streamable HTTP.")] = False,  # noqa: FBT002
    debug: _Debug = False,  # noqa: FBT002
) -> None:
    """Serve an agent over Agent2Agent, or with --mcp as a tool."""
    options = ServeOptions(target, host, port, store, token_env, grpc, grpc_port, allow_anonymous)
    guarded(lambda: serve_tool(options, http=mcp_http) if mcp or mcp_http else serve_agent(options, typer.echo), debug=debug)


add_store_commands(app)
add_service_commands(app)
