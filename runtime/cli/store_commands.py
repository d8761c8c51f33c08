"""The subcommands for the contents of a store, and their options.

Their implementations are in other modules.
"""

from __future__ import annotations

from typing import Annotated

import typer

from .conversation import RunOptionsGiven, converse, wanted_target
from .copies import back_up, export_to, hold_store, import_from, release_store
from .guarded import guarded
from .kept import ListOptions, cancel_run, forget_runs, list_runs, retry_run, show_run
from .loading import with_types_of
from .pictures import draw_graph, draw_timeline
from .posting import list_schedules, list_tasks, post_to

__all__ = ["add_store_commands"]

_Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]
_Id = Annotated[
    str, typer.Argument(metavar="ID", help="The id of a run, as listed by offbook runs.")
]
_Agent = Annotated[
    str | None,
    typer.Argument(
        metavar="FILE_OR_MODULE[:AGENT]", help="The agent of the run, as agents.py:weather."
    ),
]
_Store = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="The store: a file, redis://… or postgresql://… [OFFBOOK_STORE, offbook.db]",
    ),
]
_Place = Annotated[
    str | None,
    typer.Argument(
        metavar="STORE",
        help="The store: a file, redis://… or postgresql://… [OFFBOOK_STORE, offbook.db]",
    ),
]
_Json = Annotated[bool, typer.Option("--json", help="Print one line of JSON per item.")]
_Load = Annotated[
    str | None,
    typer.Option(
        "--load",
        metavar="FILE_OR_MODULE",
        help="Import this first, to register the custom types in the store.",
    ),
]
_Root = Annotated[str, typer.Option("--agent", metavar="NAME", help="The name of the root agent.")]
_Output = Annotated[
    str | None,
    typer.Option(
        "--output", "-o", metavar="FILE", help="The file to write. Its suffix selects the format."
    ),
]


def add_store_commands(app: typer.Typer) -> None:
    """Add them to the command."""
    for command in (
        runs,
        show,
        resume,
        retry,
        cancel,
        post,
        tasks,
        schedules,
        forget,
        hold,
        release,
        backup,
        graph,
        timeline,
    ):
        app.command()(command)
    app.command("export")(export_)
    app.command("import")(import_)


def runs(
    status: Annotated[
        list[str] | None,
        typer.Option(
            help="Only runs that are running, interrupted, completed, failed, cancelled, drained "
            "or stuck. Repeatable."
        ),
    ] = None,
    agent: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only runs of this agent.")
    ] = None,
    session: Annotated[
        str | None, typer.Option(metavar="ID", help="Only runs of this session.")
    ] = None,
    label: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="Only runs with this label. Repeatable."),
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="The maximum number of runs.")] = 20,
    after: Annotated[
        str | None, typer.Option(metavar="ID", help="List the runs that follow this one.")
    ] = None,
    store: _Store = None,
    load: _Load = None,
    as_json: _Json = False,  # noqa: FBT002 -- an option of a command
    debug: _Debug = False,  # noqa: FBT002
) -> None:
    """List the runs in a store, newest first."""
    options = ListOptions(status or (), session, agent, label or (), limit, after, as_json)
    guarded(lambda: with_types_of(load, lambda: list_runs(store, options)), debug=debug)


def show(
    run_id: _Id,
    store: _Store = None,
    load: _Load = None,
    as_json: _Json = False,  # noqa: FBT002
    debug: _Debug = False,  # noqa: FBT002
) -> None:
    """Show a run: its events and its pending interrupts."""
    guarded(
        lambda: with_types_of(load, lambda: show_run(store, run_id, as_json=as_json)), debug=debug
    )


def resume(
    run_id: _Id,
    target: _Agent = None,
    data: Annotated[
        str | None, typer.Option(metavar="JSON_OR_TEXT", help="The answer, as JSON or text.")
    ] = None,
    yes: Annotated[  # noqa: FBT002 -- an option of a command
        bool, typer.Option("--yes", help="Approve the call whose interrupt is ID.")
    ] = False,
    no: Annotated[
        str | None, typer.Option(metavar="REASON", help="Deny the call, with a reason.")
    ] = None,
    store: _Store = None,
    as_json: _Json = False,  # noqa: FBT002
    debug: _Debug = False,  # noqa: FBT002
) -> None:
    """Answer a run's interrupts and run the rest, or continue a cancelled run."""

    def work() -> int:
        where = wanted_target("resume", run_id, target)
        return converse(RunOptionsGiven(where, None, None, run_id, store, as_json, data, yes, no))

    guarded(work, debug=debug)


def retry(run_id: _Id, target: _Agent = None, store: _Store = None, debug: _Debug = False) -> None:  # noqa: FBT002
    """Retry a stuck run: one quarantined after repeated crashes."""
    guarded(lambda: retry_run(store, run_id, target), debug=debug)


def cancel(run_id: _Id, store: _Store = None, debug: _Debug = False) -> None:  # noqa: FBT002
    """Cancel a run, in whichever process it runs."""
    guarded(lambda: cancel_run(store, run_id), debug=debug)


def post(
    session: Annotated[str, typer.Argument(metavar="SESSION", help="The id of the session.")],
    text: Annotated[str, typer.Argument(metavar="TEXT", help="The message.")],
    agent: _Root,
    post_id: Annotated[
        str | None,
        typer.Option(
            "--id", metavar="ID", help="The id of the post. The same id is the same post."
        ),
    ] = None,
    when: Annotated[
        str, typer.Option(help="When it is heard: safe_point, turn_end or preempt.")
    ] = "safe_point",
    store: _Store = None,
    as_json: _Json = False,  # noqa: FBT002
    debug: _Debug = False,  # noqa: FBT002
) -> None:
    """Post a message to a session: its running turn hears it, or it starts a turn."""
    guarded(
        lambda: post_to(store, session, text, agent, post_id, when, as_json=as_json), debug=debug
    )


def tasks(
    session: Annotated[
        str, typer.Argument(metavar="SESSION", help="The session that started the tasks.")
    ],
    store: _Store = None,
    as_json: _Json = False,  # noqa: FBT002
    debug: _Debug = False,  # noqa: FBT002
) -> None:
    """List the background tasks of a session."""
    guarded(lambda: list_tasks(store, session, as_json=as_json), debug=debug)


def schedules(
    agent: _Root,
    store: _Store = None,
    as_json: _Json = False,  # noqa: FBT002
    debug: _Debug = False,  # noqa: FBT002
) -> None:
    """List the schedules of an agent."""
    guarded(lambda: list_schedules(store, agent, as_json=as_json), debug=debug)


def forget(
    run_ids: Annotated[list[str], typer.Argument(metavar="ID...", help="The ids of the runs.")],
    store: _Store = None,
    debug: _Debug = False,  # noqa: FBT002
) -> None:
    """Delete everything stored of these runs."""
    guarded(lambda: forget_runs(store, run_ids), debug=debug)


def hold(store: _Place = None, debug: _Debug = False) -> None:  # noqa: FBT002
    """Hold a store: no run starts, continues or is recovered until it is released."""
    guarded(lambda: hold_store(store), debug=debug)


def release(
    store: _Place = None,
    env: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="The environment (OFFBOOK_ENV) that the store belongs to afterwards.",
        ),
    ] = None,
    debug: _Debug = False,  # noqa: FBT002
) -> None:
    """Release a held store: runs can start and continue again."""
    guarded(lambda: release_store(store, env), debug=debug)


_Where = Annotated[
    str, typer.Argument(metavar="STORE", help="The store: a file, redis://… or postgresql://…")
]


def backup(
    store: _Where,
    file: Annotated[str, typer.Argument(metavar="FILE", help="The copy. It must not exist yet.")],
    debug: _Debug = False,  # noqa: FBT002
) -> None:
    """Copy an SQLite store, even while it is in use."""
    guarded(lambda: back_up(store, file), debug=debug)


def export_(
    store: _Where,
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="The file to write. It must not exist yet.")
    ],
    debug: _Debug = False,  # noqa: FBT002
) -> None:
    """Export the runs and sessions of a held store to a file."""
    guarded(lambda: export_to(store, file), debug=debug)


def import_(
    store: _Where,
    file: Annotated[str, typer.Argument(metavar="FILE", help="A file written by offbook export.")],
    debug: _Debug = False,  # noqa: FBT002
) -> None:
    """Import exported runs and sessions into a store. Existing data is not overwritten."""
    guarded(lambda: import_from(store, file), debug=debug)


def graph(
    target: Annotated[
        str,
        typer.Argument(
            metavar="FILE_OR_MODULE[:AGENT]",
            help="The agent, as agents.py:weather. The default name is `agent`.",
        ),
    ],
    form: Annotated[str | None, typer.Option(help="The format: text, mermaid or svg.")] = None,
    output: _Output = None,
    debug: _Debug = False,  # noqa: FBT002
) -> None:
    """Draw the tree of agents."""
    guarded(lambda: draw_graph(target, form, output), debug=debug)


def timeline(
    run_id: _Id,
    form: Annotated[str | None, typer.Option(help="The format: text, svg or html.")] = None,
    output: _Output = None,
    store: _Store = None,
    load: _Load = None,
    debug: _Debug = False,  # noqa: FBT002
) -> None:
    """Draw the timeline of a run: active agents, waits and lost processes."""
    guarded(
        lambda: with_types_of(load, lambda: draw_timeline(store, run_id, form, output)), debug=debug
    )
