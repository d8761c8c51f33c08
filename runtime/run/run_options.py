"""The options of one run, as types for the methods that pass them on.

Owns: the names and types of what `Runner.run` takes beside the messages. It must never hold a default or a check: those are `Runner.run`'s.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypedDict

from ..agent.options import OptionsLike
from ..data.chat import Message
from ..durability.open_mark import UnfinishedRun

__all__ = ["Given", "RunOptions", "SearchOptions", "TurnOptions"]


class TurnOptions(TypedDict, total=False):
    """The options of one turn of a session. Write `**options: Unpack[TurnOptions]` in a function of your own that passes them on."""

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
    """The options of `Runner.run`. Write `**options: Unpack[RunOptions]` in a function of your own that passes them on."""

    session_id: str | None


class SearchOptions(TypedDict, total=False):
    """The options of `Runner.recover`."""

    max_attempts: int
    limit: int | None
    concurrency: int | None
    where: Callable[[UnfinishedRun], bool] | None


class Given(NamedTuple):
    """What a run is begun with."""

    messages: str | Message | Sequence[Message]
    checkpoint_id: str | None
    streaming: bool | None
    timeout: float | None
    is_named: bool
    detached: bool
    labels: Mapping[str, str]
