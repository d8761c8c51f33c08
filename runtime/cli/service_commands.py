"""The subcommands for a machine or a service, and their options.

Their implementations are in other modules.
"""

from __future__ import annotations

from typing import Annotated

import typer

from .console_command import ConsoleOptions, open_console
from .doctor import DoctorOptions, examine
from .guarded import guarded
from .live_stats import StatsOptions, watch
from .stores import schema_of

__all__ = ["add_service_commands"]

_Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]
_Store = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="The store: a file, redis://… or postgresql://… [OFFBOOK_STORE, offbook.db]",
    ),
]


def add_service_commands(app: typer.Typer) -> None:
    """Add them to the command."""
    for command in (console, stats, doctor, schema):
        app.command()(command)


def console(
    target: Annotated[
        str | None,
        typer.Argument(
            metavar="[FILE_OR_MODULE[:RUNNER]]",
            help="A Runner or an agent. Without it, the console shows all runs of the store.",
        ),
    ] = None,
    store: _Store = None,
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65_535, help="The port, or 0 for any free port.")
    ] = 8737,
    token_env: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The environment variable with the console's token."),
    ] = None,
    debug: _Debug = False,  # noqa: FBT002 -- an option of a command
) -> None:
    """Open a web page that shows runs and lets you answer them."""
    guarded(lambda: open_console(ConsoleOptions(target, store, host, port, token_env)), debug=debug)


def stats(
    address: Annotated[
        str,
        typer.Argument(
            metavar="ADDRESS", help="The address of the service's console, including its token."
        ),
    ],
    token: Annotated[str | None, typer.Option(help="The token, if the address has none.")] = None,
    every: Annotated[
        float, typer.Option(min=0.2, max=3600, help="The seconds between updates.")
    ] = 2.0,
    once: Annotated[bool, typer.Option("--once", help="Print the state once, and exit.")] = False,  # noqa: FBT002
    as_json: Annotated[  # noqa: FBT002
        bool, typer.Option("--json", help="Print one line of JSON per update.")
    ] = False,
    debug: _Debug = False,  # noqa: FBT002
) -> None:
    """Watch a running service: its actors, mailboxes and runs."""
    guarded(lambda: watch(StatsOptions(address, token, every, once, as_json)), debug=debug)


def doctor(
    target: Annotated[
        str | None,
        typer.Argument(metavar="[FILE_OR_MODULE[:AGENT]]", help="An agent to check too."),
    ] = None,
    store: _Store = None,
    ask: Annotated[bool, typer.Option("--ask", help="Send the model a short request.")] = False,  # noqa: FBT002
    debug: _Debug = False,  # noqa: FBT002
) -> None:
    """Check the store, keys, model, clock and versions."""
    guarded(lambda: examine(DoctorOptions(target, store, ask)), debug=debug)


def schema(
    store: Annotated[
        str, typer.Argument(metavar="STORE", help="The address of the store: postgresql://…")
    ],
    role: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The role that uses the tables but cannot create them."),
    ] = None,
    schema: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The tables' schema, as in PostgresStore(schema=)."),
    ] = None,
    prefix: Annotated[
        str, typer.Option(help="The prefix of the table names, as in PostgresStore(prefix=).")
    ] = "offbook_",
    debug: _Debug = False,  # noqa: FBT002
) -> None:
    """Print the SQL that creates the tables of a PostgreSQL store."""
    guarded(lambda: typer.echo(schema_of(store, role, schema, prefix), nl=False), debug=debug)
