"""Environment variables, including those of a `.env` file.

The module finds the file and decides if it is trusted. The process's own environment overrides the
file, and is never changed.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from .errors import UsageError
from .log import loggers

__all__ = ["environment", "refuse_mixed"]

_ROOT: Final = 0


class _Variables(dict[str, str]):
    """The variables, with those that come only from the file."""

    def __init__(self, of_file: Mapping[str, str], file: Path | None) -> None:
        super().__init__({**of_file, **os.environ})
        self.of_file = of_file
        self.file = file


def environment() -> dict[str, str]:
    """Return the environment, extended by the nearest `.env` file.

    The file is searched in the current folder and its parents. The search ends at a folder that
    belongs to another user or that others can write to: anyone who can place a file there could
    redirect requests that carry keys.
    """
    file = _nearest_file()
    if file is None:
        return dict(os.environ)
    import dotenv  # noqa: PLC0415 -- needed only if there is a file

    return _Variables(
        {name: value for name, value in dotenv.dotenv_values(file).items() if value is not None},
        file,
    )


def _nearest_file() -> Path | None:
    here = Path.cwd()
    for folder in (here, *here.parents):
        file = folder / ".env"
        if not _is_safe(folder):
            if file.is_file():
                loggers.models.warning(
                    "%s is not read: its folder belongs to another user, or others can write "
                    "to it.",
                    file,
                )
            return None
        if file.is_file():
            if _is_safe(file):
                return file
            loggers.models.warning(
                "%s is not read: it belongs to another user, or others can write to it.", file
            )
            return None
    return None


def _is_safe(path: Path) -> bool:
    """Return True if only this user and root can change `path`.

    Systems without owners, such as Windows, are not checked.
    """
    if not hasattr(os, "geteuid"):
        return True
    found = path.stat()
    is_shared = found.st_mode & stat.S_IWOTH or (
        found.st_mode & stat.S_IWGRP and found.st_gid not in (os.getegid(), _ROOT)
    )
    return found.st_uid in (os.geteuid(), _ROOT) and not is_shared


def refuse_mixed(values: Mapping[str, str], address: str, keys: Iterable[str]) -> None:
    """Raise if the address comes from a file and a key from the environment.

    The file could otherwise redirect the key to another server.
    """
    if (
        not isinstance(values, _Variables)
        or address in os.environ
        or not values.of_file.get(address, "").strip()
    ):
        return
    for key in keys:
        if os.environ.get(key, "").strip() and os.environ[key] != values.of_file.get(key):
            msg = (
                f"{address} is set in {values.file} and {key} in the environment: so the key "
                "could be sent to the wrong server. Set both in the same place."
            )
            raise UsageError(msg)
