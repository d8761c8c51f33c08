"""The subcommands that are about what is in a store, and their options.

Owns: names, options and help texts. What a command does is in a file of its own.
"""

from __future__ import annotations

from typing import Annotated

import typer

from .conversation import RunOptionsGiven, converse, wanted_target
from .guarded import guarded
from .kept import ListOptions, cancel_run, forget_runs, list_runs, retry_run, show_run
from .loading import with_types_of
from .pictures import draw_graph, draw_timeline

__all__ = ["add_store_commands"]

_Debug = Annotated[bool, typer.Option("--debug", help="Show where an error comes from.")]
_Id = Annotated[str, typer.Argument(metavar="ID", help="The id of the run: understudy runs lists them.")]
_Agent = Annotated[str | None, typer.Argument(metavar="FILE_OR_MODULE[:AGENT]", help="Where the agent is, which the store does not know.")]
_Store = Annotated[str | None, typer.Option(metavar="URL", help="Where runs are kept: a file, redis://…, postgresql://… [UNDERSTUDY_STORE, understudy.db]")]
_Json = Annotated[bool, typer.Option("--json", help="One line of JSON for each.")]
_Load = Annotated[str | None, typer.Option("--load", metavar="FILE_OR_MODULE", help="Import it first: it registers types that stand in the store.")]
_Output = Annotated[str | None, typer.Option("--output", "-o", metavar="FILE", help="Write it there; its ending says in which form.")]


def add_store_commands(app: typer.Typer) -> None:
    """Add them to the command."""
    for command in (runs, show, resume, retry, cancel, forget, graph, timeline):
        app.command()(command)


def runs(
    status: Annotated[list[str] | None, typer.Option(help="running, interrupted, completed, failed, cancelled, drained, stuck.")] = None,
    agent: Annotated[str | None, typer.Option(metavar="NAME", help="Of that agent.")] = None,
    session: Annotated[str | None, typer.Option(metavar="ID", help="Of that conversation.")] = None,
    label: Annotated[list[str] | None, typer.Option(metavar="NAME=VALUE", help="With that label.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="How many at most.")] = 20,
    after: Annotated[str | None, typer.Option(metavar="ID", help="Those behind that run.")] = None,
    store: _Store = None,
    load: _Load = None,
    as_json: _Json = False,  # noqa: FBT002 -- an option of a command
    debug: _Debug = False,  # noqa: FBT002
) -> None:
    """List the runs in a store, the newest first."""
    options = ListOptions(status or (), session, agent, label or (), limit, after, as_json)
    guarded(lambda: with_types_of(load, lambda: list_runs(store, options)), debug=debug)


def show(run_id: _Id, store: _Store = None, load: _Load = None, as_json: _Json = False, debug: _Debug = False) -> None:  # noqa: FBT002
    """Show a run: its events, and what it waits for."""
    guarded(lambda: with_types_of(load, lambda: show_run(store, run_id, as_json=as_json)), debug=debug)


def resume(
    run_id: _Id,
    target: _Agent = None,
    data: Annotated[str | None, typer.Option(metavar="JSON_OR_TEXT", help="The answer.")] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Approve.")] = False,  # noqa: FBT002 -- an option of a command
    no: Annotated[str | None, typer.Option(metavar="REASON", help="Deny, and say why.")] = None,
    store: _Store = None,
    as_json: _Json = False,  # noqa: FBT002
    debug: _Debug = False,  # noqa: FBT002
) -> None:
    """Answer what a run waits for, and play the rest; or go on with one that was cancelled."""

    def work() -> int:
        where = wanted_target("resume", run_id, target)
        return converse(RunOptionsGiven(where, None, None, run_id, store, as_json, data, yes, no))

    guarded(work, debug=debug)


def retry(run_id: _Id, target: _Agent = None, store: _Store = None, debug: _Debug = False) -> None:  # noqa: FBT002
    """Give a run another life that was set aside, because it has ended its process too often."""
    guarded(lambda: retry_run(store, run_id, target), debug=debug)


def cancel(run_id: _Id, store: _Store = None, debug: _Debug = False) -> None:  # noqa: FBT002
    """Cancel a run that is at work, in whichever process."""
    guarded(lambda: cancel_run(store, run_id), debug=debug)


def forget(
    run_ids: Annotated[list[str], typer.Argument(metavar="ID...", help="The ids of the runs.")],
    store: _Store = None,
    debug: _Debug = False,  # noqa: FBT002
) -> None:
    """Remove all that the store holds of runs."""
    guarded(lambda: forget_runs(store, run_ids), debug=debug)


def graph(
    target: Annotated[str, typer.Argument(metavar="FILE_OR_MODULE[:AGENT]", help="Where the agent is. Without a name, its `agent`.")],
    form: Annotated[str | None, typer.Option(help="text, mermaid or svg.")] = None,
    output: _Output = None,
    debug: _Debug = False,  # noqa: FBT002
) -> None:
    """Draw the tree of agents."""
    guarded(lambda: draw_graph(target, form, output), debug=debug)


def timeline(
    run_id: _Id,
    form: Annotated[str | None, typer.Option(help="text, svg or html.")] = None,
    output: _Output = None,
    store: _Store = None,
    load: _Load = None,
    debug: _Debug = False,  # noqa: FBT002
) -> None:
    """Draw a run over time: who was at work when, what was waited for, what was lost."""
    guarded(lambda: with_types_of(load, lambda: draw_timeline(store, run_id, form, output)), debug=debug)
