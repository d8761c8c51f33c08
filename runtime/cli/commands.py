"""The subcommands of `offbook`, and their options. Their implementations are in other modules."""

from __future__ import annotations

from importlib.metadata import version
from typing import Annotated

import typer

from .conversation import RunOptionsGiven, converse
from .demo import list_demos, play_demo
from .guarded import guarded
from .service_commands import add_service_commands
from .serving import ServeOptions, serve_tool
from .serving import serve as serve_agent
from .store_commands import add_store_commands

__all__ = ["app", "demo", "run", "serve"]

app = typer.Typer(
    name="offbook",
    help="Run LLM agents as supervised actors.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

_Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]
_Target = Annotated[
    str,
    typer.Argument(
        metavar="FILE_OR_MODULE[:AGENT]",
        help="The agent, as agents.py:weather. The default name is `agent`.",
    ),
]
_Store = Annotated[
    str | None,
    typer.Option(metavar="URL", help="The store: a file, redis://… or postgresql://…"),
]
_Json = Annotated[bool, typer.Option("--json", help="Print one line of JSON per event.")]


def _show_version(wanted: bool) -> None:  # noqa: FBT001 -- as typer calls it
    if wanted:
        typer.echo(f"offbook {version('offbook')}")
        raise typer.Exit


@app.callback()
def _commands(
    _version: Annotated[  # noqa: FBT002
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Run LLM agents as supervised actors."""


@app.command()
def run(
    target: _Target,
    text: Annotated[
        str | None,
        typer.Argument(metavar="[TEXT]", help="One message. Without it, a conversation starts."),
    ] = None,
    session: Annotated[
        str | None,
        typer.Option(metavar="ID", help="The stored conversation to continue."),
    ] = None,
    resume: Annotated[
        str | None,
        typer.Option(metavar="ID", help="An interrupted or cancelled run to resume first."),
    ] = None,
    store: _Store = None,
    as_json: _Json = False,  # noqa: FBT002 -- an option of a command
    debug: _Debug = False,  # noqa: FBT002
) -> None:
    """Start a conversation with an agent, or send it one message."""
    guarded(
        lambda: converse(RunOptionsGiven(target, text, session, resume, store, as_json)),
        debug=debug,
    )


@app.command()
def demo(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[NAME]",
            help="The demo. Without it, a team of agents whose process is killed and recovered.",
        ),
    ] = None,
    list_all: Annotated[bool, typer.Option("--list", help="List the demos.")] = False,  # noqa: FBT002 -- an option of a command
    pace: Annotated[
        float, typer.Option(min=0.05, max=10, help="The delay factor of the models.")
    ] = 1.0,
    debug: _Debug = False,  # noqa: FBT002
) -> None:
    """Run example agents with canned replies, without a key or a network."""
    guarded(lambda: list_demos() if list_all else play_demo(name, pace), debug=debug)


@app.command()
def serve(
    target: _Target,
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65_535, help="The port, or 0 for any free port.")
    ] = 9999,
    store: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="The store for tasks: a file, redis://… or postgresql://… [in memory]",
        ),
    ] = None,
    token_env: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="The environment variable with the token that clients must send.",
        ),
    ] = None,
    grpc: Annotated[bool, typer.Option("--grpc", help="Also serve gRPC.")] = False,  # noqa: FBT002 -- an option of a command
    grpc_port: Annotated[int, typer.Option(min=0, max=65_535, help="The port for gRPC.")] = 50051,
    allow_anonymous: Annotated[  # noqa: FBT002
        bool,
        typer.Option("--allow-anonymous", help="Accept every client that can reach the address."),
    ] = False,
    mcp: Annotated[  # noqa: FBT002
        bool,
        typer.Option(
            "--mcp",
            help="Serve the agent as an MCP tool, over standard input and output.",
        ),
    ] = False,
    mcp_http: Annotated[  # noqa: FBT002
        bool,
        typer.Option("--mcp-http", help="Serve the agent as an MCP tool, over streamable HTTP."),
    ] = False,
    debug: _Debug = False,  # noqa: FBT002
) -> None:
    """Serve an agent over Agent2Agent, or as an MCP tool with --mcp."""
    options = ServeOptions(target, host, port, store, token_env, grpc, grpc_port, allow_anonymous)
    guarded(
        lambda: (
            serve_tool(options, http=mcp_http)
            if mcp or mcp_http
            else serve_agent(options, typer.echo)
        ),
        debug=debug,
    )


add_store_commands(app)
add_service_commands(app)
