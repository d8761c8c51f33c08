"""The labels and sessions by which runs are searched."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ..errors import UsageError

__all__ = ["checked_labels", "label_text", "session_text"]

_MOST_LABELS: Final = 16
_LONGEST_NAME: Final = 64
_LONGEST_VALUE: Final = 256
_LONGEST_SESSION: Final = 300
"""The longest session id, in characters, that is listed verbatim, not by its digest."""


def checked_labels(call: str, labels: object) -> dict[str, str]:
    """Raise UsageError if these cannot be a run's labels."""
    if labels is None:
        return {}
    if not isinstance(labels, Mapping):
        msg = (
            f"{call}(): labels must be a mapping of strings to strings, got {labels!r:.80}. Pass "
            "one such as {'tenant': 'acme'}."
        )
        raise UsageError(msg)
    if len(labels) > _MOST_LABELS:
        msg = (
            f"{call}(): labels must have at most {_MOST_LABELS} entries, got "
            f"{len(labels)}. Put the others into session_values."
        )
        raise UsageError(msg)
    for name, value in labels.items():
        if not isinstance(name, str) or not isinstance(value, str):
            wrong = name if not isinstance(name, str) else value
            msg = (
                f"{call}(): labels must have strings as names and values, got a "
                f"{type(wrong).__name__} in {name!r:.80}: {value!r:.80}."
            )
            raise UsageError(msg)
        if not 0 < len(name) <= _LONGEST_NAME or "\0" in name:
            msg = (
                f"{call}(): labels must have names of 1 to {_LONGEST_NAME} characters without "
                f"NUL, got {name!r:.80}."
            )
            raise UsageError(msg)
        if len(value) > _LONGEST_VALUE:
            msg = (
                f"{call}(): labels must have values of at most {_LONGEST_VALUE} characters, "
                f"got {len(value):,} for {name!r}. Shorten it."
            )
            raise UsageError(msg)
    return dict(labels)


def label_text(name: str, value: str) -> str:
    """Return a label as the store lists it. Names contain no NUL."""
    return f"{name}\0{value}"


def session_text(session_id: str) -> str:
    """Return a session as the store lists it."""
    if len(session_id) <= _LONGEST_SESSION:
        return session_id
    from hashlib import blake2b  # noqa: PLC0415 -- a part of the standard library that most programs do without

    digest = blake2b(session_id.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
    return f"{session_id[:_LONGEST_SESSION]}\0{digest}"
