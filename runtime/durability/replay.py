"""Replays the records of a journal into the image of a run, and reads its events.

`journal.py` describes the records. This module never reads a store.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ..codec.packing import unpack
from ..data.events import AgentEvent
from ..errors import CheckpointError, UsageError
from .compatibility import check_format
from .image import APART
from .path_table import read_path, read_paths

if TYPE_CHECKING:
    from ..data.outcome import Outcome
    from ..data.run_path import Path

__all__ = ["EventReader", "replay"]

_DAMAGE: Final = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, UsageError)


class EventReader:
    """Reads the events from the records of one run, which must be passed in order."""

    __slots__ = ("_paths",)

    def __init__(self) -> None:
        self._paths: dict[int, Path] = {}

    def read(self, record: bytes) -> list[AgentEvent]:
        events: list[AgentEvent] = []
        for kind, *change in unpack(record):
            if kind == "start":
                self._paths = read_paths(change[0].get("paths", ()))
                events += change[0].get("posts", ())
            elif kind == "path":
                read_paths([change], self._paths)
            elif kind == "event" and isinstance(change[1], AgentEvent):
                events.append(
                    change[1].replace(run_path=read_path(change[2], self._paths))
                    if len(change) > 2  # noqa: PLR2004 -- with a path
                    else change[1]
                )
        return events


def replay(records: list[bytes]) -> dict[str, Any]:
    """Replay the records into an image, with `mark` (the last one), and `events`.

    Raises CheckpointError if the records are inconsistent.
    """
    image: dict[str, Any] = {}
    for position, record in enumerate(records):
        try:
            for change in unpack(record):
                _apply(image, change)
        except CheckpointError as error:
            msg = f"record {position} of the journal: {error}"
            raise CheckpointError(msg) from error
        except _DAMAGE as error:
            msg = (
                f"the journal is damaged at record {position}: {type(error).__name__}: {error}. "
                "Restore the store from a backup"
            )
            raise CheckpointError(msg) from error
    if not image:
        raise CheckpointError(
            "the journal is damaged: it does not start with the start of a run. Restore the "
            "store from a backup."
        )
    try:
        _prune(image)
    except _DAMAGE as error:
        msg = (
            "the journal is damaged: its records do not belong together "
            f"({type(error).__name__}: {error}). Restore the store from a backup."
        )
        raise CheckpointError(msg) from error
    return image


def _apply(image: dict[str, Any], change: list[Any]) -> None:
    kind = change[0]
    if kind == "start":
        check_format(change[1])
        image.clear()
        image.update(change[1], mark=None)
    elif not image:
        raise CheckpointError(
            "its first record must be the start of a run. Restore the store from a backup."
        )
    else:
        _CHANGES[kind](image, *change[1:])


def _event(
    image: dict[str, Any], lane: str | None, event: AgentEvent, path: list[Any] | None = None
) -> None:
    if lane is not None:
        image["lanes"][lane][2].append(
            (
                event.agent_name if event.post is None else "",
                event.run_path if path is None else path,
                event.invocation_id,
                event.message,
            )
        )


def _frame(image: dict[str, Any], key: str, packed: bytes) -> None:
    frame, before = unpack(packed), image["frames"].get(key, {})
    if frame.pop("apart", False):
        frame.update((name, before[name]) for name in APART if name in before)
    image["frames"][key] = frame


def _waits(image: dict[str, Any], key: str, name: str, packed: bytes) -> None:
    frame, (came, gone) = image["frames"][key], unpack(packed)
    if name not in APART:
        raise ValueError("only state that is stored separately can change separately")
    waits = frame.setdefault(name, {})
    waits.update(came)
    for one in gone:
        waits.pop(one, None)
    if not waits:
        del frame[name]


def _path(image: dict[str, Any], *row: Any) -> None:
    image.setdefault("paths", []).append(row)


def _ended(image: dict[str, Any], parent: str, cast_key: Any, outcome: Outcome) -> None:
    image["ended"].setdefault(parent, {})[cast_key] = outcome


def _values(image: dict[str, Any], changed: dict[str, Any], gone: list[str]) -> None:
    image["values"].update(changed)
    for key in gone:
        image["values"].pop(key, None)


def _joined(image: dict[str, Any], lane: str, children: list[str]) -> None:
    lanes = image["lanes"]
    for child in children:
        rows, lanes[child][2] = lanes[child][2], []
        lanes[lane][2].extend(rows)


def _mark(image: dict[str, Any], kind: str, number: int) -> None:
    if type(kind) is not str or type(number) is not int:
        raise TypeError("a mark must have a string and an integer")
    image["mark"] = (kind, number)


_CHANGES: Final[dict[str, Any]] = {
    "path": _path,
    "frame": _frame,
    "waits": _waits,
    "gone": lambda image, key: image["frames"].pop(key, None),
    "event": _event,
    "ended": _ended,
    "asked": lambda image, parent: image["ended"].pop(parent, None),
    "step": lambda image, key, name, result: (
        image["steps"].setdefault(key, {}).__setitem__(name, result)
    ),
    "lane": lambda image, key, parent, fork: image["lanes"].__setitem__(key, [parent, fork, []]),
    "joined": _joined,
    "values": _values,
    "counters": lambda image, news: image.update(news),
    "mark": _mark,
}


def _prune(image: dict[str, Any]) -> None:
    """Drop data of agents that no longer exist."""
    frames: dict[str, Any] = image["frames"]
    changed = True
    while changed:
        orphans = [
            key for key, frame in frames.items() if "in" in frame and frame["in"] not in frames
        ]
        for key in orphans:
            del frames[key]
        changed = bool(orphans)
    for table in ("ended", "steps"):
        image[table] = {key: value for key, value in image[table].items() if key in frames}
    lanes: dict[str, Any] = image["lanes"]
    used: set[str] = {""}
    for frame in frames.values():
        used.update((frame["lane"], *frame.get("lanes", ())))
    for key in tuple(used):
        above: Any = lanes.get(key)
        while above is not None and above[0] is not None and above[0] not in used:
            used.add(above[0])
            above = lanes.get(above[0])
    image["lanes"] = {key: lane for key, lane in lanes.items() if key in used}
