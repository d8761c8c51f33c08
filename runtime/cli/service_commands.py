"""The subcommands that are about a machine or a service, and their options.

Owns: names, options and help texts. What a command does is in a file of its own.
"""

from __future__ import annotations

from typing import Annotated

import typer

from .console_command import ConsoleOptions, open_console
from .doctor import DoctorOptions, examine
from .guarded import guarded
from .live_stats import StatsOptions, watch

__all__ = ["add_service_commands"]

_Debug = Annotated[bool, typer.Option("--debug", help="Show where an error comes from.")]
_Store = Annotated[str | None, typer.Option(metavar="URL", help="Where runs are kept: a file, redis://…, postgresql://… [UNDERSTUDY_STORE, understudy.db]")]


def add_service_commands(app: typer.Typer) -> None:
    """Add them to the command."""
    for command in (console, stats, doctor):
        app.command()(command)


def console(
    target: Annotated[str | None, typer.Argument(metavar="[FILE_OR_MODULE[:RUNNER]]", help="A Runner or an agent; without it, what is in the store.")] = None,
    store: _Store = None,
    host: Annotated[str, typer.Option(help="The address to listen at.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65_535, help="The port; 0: any that is free.")] = 8737,
    token_env: Annotated[str | None, typer.Option(metavar="NAME", help="The environment variable that holds the token of the page.")] = None,
    debug: _Debug = False,  # noqa: FBT002 -- an option of a command
) -> None:
    """Open a page on which one sees what is going on, and can answer."""
    guarded(lambda: open_console(ConsoleOptions(target, store, host, port, token_env)), debug=debug)


def stats(
    address: Annotated[str, typer.Argument(metavar="ADDRESS", help="The address of the service's console, with its token.")],
    token: Annotated[str | None, typer.Option(help="The token, where the address has none.")] = None,
    every: Annotated[float, typer.Option(min=0.2, max=3600, help="Seconds between two looks.")] = 2.0,
    once: Annotated[bool, typer.Option("--once", help="Look once.")] = False,  # noqa: FBT002
    as_json: Annotated[bool, typer.Option("--json", help="One line of JSON for each look.")] = False,  # noqa: FBT002
    debug: _Debug = False,  # noqa: FBT002
) -> None:
    """Watch a running service: its actors, mailboxes and runs."""
    guarded(lambda: watch(StatsOptions(address, token, every, once, as_json)), debug=debug)


def doctor(
    target: Annotated[str | None, typer.Argument(metavar="[FILE_OR_MODULE[:AGENT]]", help="An agent to look at as well.")] = None,
    store: _Store = None,
    ask: Annotated[bool, typer.Option("--ask", help="Ask the model for a word.")] = False,  # noqa: FBT002
    debug: _Debug = False,  # noqa: FBT002
) -> None:
    """Check the store, keys, model, clock and versions."""
    guarded(lambda: examine(DoctorOptions(target, store, ask)), debug=debug)
