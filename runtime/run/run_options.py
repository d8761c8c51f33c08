"""The options of a `Runner` and of one run, as types for functions that forward them.

Defaults and checks are in `Runner`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypedDict

from ..agent.history import HistoryPolicy, HistoryRewriter
from ..agent.hooks import RunHooks
from ..agent.options import OptionsLike
from ..data.chat import Message
from ..durability.unfinished_run import UnfinishedRun

__all__ = ["Given", "ResumeOptions", "RunOptions", "RunnerOptions", "SearchOptions", "TurnOptions"]


class TurnOptions(TypedDict, total=False):
    """The options of one turn of a session.

    Write `**options: Unpack[TurnOptions]` in a function that forwards them.
    """

    checkpoint_id: str | None
    session_values: Mapping[str, object] | None
    options: OptionsLike
    streaming: bool | None
    timeout: float | None
    run_id: str | None
    detached: bool
    labels: Mapping[str, str] | None
    context: object


class RunOptions(TurnOptions, total=False):
    """The options of `Runner.run`.

    Write `**options: Unpack[RunOptions]` in a function that forwards them.
    """

    session_id: str | None


class ResumeOptions(TypedDict, total=False):
    """The options of `Runner.resume`."""

    data: object
    tool_options: OptionsLike
    session_values: Mapping[str, object] | None
    options: OptionsLike
    streaming: bool | None
    timeout: float | None
    context: object
    answer_id: str | None


class RunnerOptions(TypedDict, total=False):
    """The options of `Runner`, without `system` and `store`."""

    streaming: bool
    durability: Literal["none", "interrupt", "step"]
    max_transfers: int
    hooks: RunHooks | None
    event_buffer: int
    keep: Literal["unfinished", "all"] | float | None
    version: str | None
    app: str | None
    skip_transfer_messages: bool
    handoff_input_filter: Callable[[Any], object] | None
    history: HistoryPolicy | HistoryRewriter | None
    coalesce_deltas: bool


class SearchOptions(TypedDict, total=False):
    """The options of `Runner.recover`."""

    max_attempts: int
    limit: int | None
    concurrency: int | None
    where: Callable[[UnfinishedRun], bool] | None


class Given(NamedTuple):
    """The arguments that start a run."""

    messages: str | Message | Sequence[Message]
    checkpoint_id: str | None
    streaming: bool | None
    timeout: float | None
    is_named: bool
    detached: bool
    labels: Mapping[str, str]
