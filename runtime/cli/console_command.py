"""`offbook console`: a web page that shows the state of runs and acts on them.

This module passes its options to the console, which is a separate package with a separate extra.
"""

from __future__ import annotations

import asyncio
import importlib
import os
from dataclasses import dataclass
from typing import Any, Final

from ..errors import UsageError
from ..runner import Runner
from .loading import import_agents, load
from .stores import chosen_address, existing_store_at, store_at
from .terminal.screen import Screen

__all__ = ["ConsoleOptions", "open_console"]

_CONSOLE: Final = ".console"


@dataclass(frozen=True, slots=True)
class ConsoleOptions:
    """The options of the command."""

    target: str | None = None
    store: str | None = None
    host: str = "127.0.0.1"
    port: int = 8737
    token_env: str | None = None


def open_console(options: ConsoleOptions) -> int:
    """Serve the console until Ctrl-C."""
    try:
        serve_console: Any = importlib.import_module(
            _CONSOLE, __package__.rpartition(".")[0]
        ).serve_console
    except ImportError as error:
        msg = (
            f"offbook console needs the extra `console`: pip install 'offbook[console]' ({error})."
        )
        raise UsageError(msg) from error
    import_agents()  # a store may contain their types
    token = _token(options.token_env)
    found = None if options.target is None else load(options.target)
    if isinstance(found, Runner):
        if options.store is not None:
            msg = f"{options.target} is a Runner with its own store. Omit --store."
            raise UsageError(msg)
        serve_console(found, host=options.host, port=options.port, token=token, say=Screen().say)
        return 0
    store = (
        existing_store_at(options.store)
        if found is None
        else store_at(chosen_address(options.store))
    )
    try:
        serve_console(
            found, store=store, host=options.host, port=options.port, token=token, say=Screen().say
        )
    finally:
        asyncio.run(store.aclose())
    return 0


def _token(name: str | None) -> str | None:
    if name is None:
        return None
    token = os.environ.get(name, "").strip()
    if not token:
        msg = f"--token-env {name}: this variable is not set or is empty. Set it."
        raise UsageError(msg)
    return token
