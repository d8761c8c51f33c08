"""`understudy doctor`: whether this machine has what agents need, a line for each.

Owns: what is looked at. It must never write a key, nor change anything but a value of its own in the store, which it removes.
"""

from __future__ import annotations

import asyncio
import importlib
import os
import platform
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from textwrap import wrap
from typing import Any, Final, Literal

from ..agent.tree import build_tree
from ..clock import boottime
from ..data.chat import Message, new_id
from ..durability.store_keys import RESERVED
from ..environment import environment
from ..errors import UnderstudyError, UsageError, text_of
from ..models import ModelRequest, model_from_env
from ..stores import JournalStore
from .loading import import_agents, load
from .stores import chosen_address, sqlite_path, store_at
from .terminal.screen import Screen, one_line

__all__ = ["DoctorOptions", "examine"]

_CORE: Final = ("pykka", "openai", "pydantic", "msgpack", "aiohttp")
_EXTRAS: Final[Mapping[str, tuple[str, ...]]] = {
    "fast": ("uvloop",),
    "redis": ("redis",),
    "postgres": ("psycopg",),
    "a2a": ("a2a-sdk", "uvicorn"),
    "mcp": ("mcp",),
    "otel": ("opentelemetry-sdk", "opentelemetry-exporter-otlp-proto-http", "prometheus-client"),
    "console": ("starlette", "uvicorn"),
    "realtime": ("websockets",),
    "ray": ("ray",),
}
_KEYS: Final = ("OPENAI_API_KEY", "ARK_API_KEY")
_APART: Final = 5.0
"""Seconds by which the clocks of this machine and of a store's server may differ."""
_SECONDS: Final = 10.0
_MOST: Final = 2000
"""Characters of what is said of one thing."""
_MARGIN: Final = 11
"""Columns of the mark and the name."""

Mark = Literal["ok", "note", "bad"]
_SIGNS: Final[Mapping[Mark, tuple[str, str, str]]] = {"ok": ("✓", "ok", "green"), "note": ("·", "- ", "yellow"), "bad": ("✗", "!!", "bold red")}


@dataclass(frozen=True, slots=True)
class DoctorOptions:
    """What is to be looked at."""

    target: str | None = None
    store: str | None = None
    ask: bool = False


@dataclass(frozen=True, slots=True)
class _Found:
    mark: Mark
    name: str
    text: str


def examine(options: DoctorOptions) -> int:
    """Look at everything. Returns 1, if something is wrong that will not work."""
    screen, is_bad = Screen(), False
    checks: list[tuple[str, Callable[[DoctorOptions], Iterator[_Found]]]] = [
        ("versions", _versions),
        ("extras", _extras),
        ("clock", _clock),
        ("keys", _keys),
        ("model", _model),
        ("store", _store),
        *([("agent", _agent)] if options.target else []),
    ]
    for name, check in checks:
        try:
            found = list(check(options))
        except Exception as error:  # noqa: BLE001 -- whatever it is, it is what is wrong
            what = "" if isinstance(error, UnderstudyError) else f"{type(error).__name__}: "
            found = [_Found("bad", name, f"{what}{text_of(error)}")]
        for one in found:
            sign, plain, style = _SIGNS[one.mark]
            screen.write(f"{plain if screen.is_plain else sign} ", style)
            screen.say(f"{one.name:<9}{_shown(one.text, screen)}")
            is_bad = is_bad or one.mark == "bad"
    return 1 if is_bad else 0


def _shown(text: str, screen: Screen) -> str:
    """One line; on a terminal as many as it needs, because what is to be done stands at its end."""
    text = one_line(text, _MOST)
    room = max(20, screen.width - _MARGIN)
    return f"\n{' ' * _MARGIN}".join(wrap(text, room, break_on_hyphens=False)) if screen.is_terminal else text


def _versions(_options: DoctorOptions) -> Iterator[_Found]:
    packages = ", ".join(f"{name} {version(name)}" for name in _CORE)
    yield _Found("ok", "versions", f"understudy {version('understudy')}, Python {platform.python_version()}, {platform.system()}; {packages}")


def _extras(_options: DoctorOptions) -> Iterator[_Found]:
    there = {name: all(_version(package) for package in packages) for name, packages in _EXTRAS.items()}
    missing = [name for name, is_there in there.items() if not is_there]
    has = f"there: {', '.join(name for name, is_there in there.items() if is_there) or 'none'}"
    yield _Found("ok", "extras", has + (f"; not there: {', '.join(missing)} (pip install 'understudy[NAME]')" if missing else ""))


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _clock(_options: DoctorOptions) -> Iterator[_Found]:
    if boottime() > boottime():
        yield _Found("bad", "clock", "the machine's clock goes backwards: leases cannot be judged by it")
    elif hasattr(time, "CLOCK_BOOTTIME"):
        yield _Found("ok", "clock", "counts the time that the machine is suspended, and never jumps")
    else:
        yield _Found("note", "clock", "does not count the time that the machine is suspended: after that, a lease is held for longer than it should be")


def _keys(_options: DoctorOptions) -> Iterator[_Found]:
    values = environment()
    found = [name for name in _KEYS if values.get(name, "").strip()]
    where = " or ".join(_KEYS)
    yield _Found("ok", "keys", f"{', '.join(found)} set") if found else _Found("note", "keys", f"no {where}: models of your own and scripted ones need none")


def _model(options: DoctorOptions) -> Iterator[_Found]:
    try:
        model = model_from_env()
    except UsageError as error:
        yield _Found("bad" if options.ask else "note", "model", text_of(error))
        return
    name = f"{getattr(model, 'model', None) or type(model).__name__}"
    base = environment().get("OPENAI_BASE_URL", "").strip()
    at = f" at {base}" if base else ""
    if not options.ask:
        yield _Found("ok", "model", f"{name}{at}; not asked (--ask asks it for a word)")
        return

    async def ask() -> str:
        try:
            async with asyncio.timeout(60):
                return (await model.generate(ModelRequest((Message.user("Say the word ready."),)))).text
        finally:
            close = getattr(model, "aclose", None)
            if close is not None:
                await close()

    begun = time.monotonic()
    said = asyncio.run(ask())
    yield _Found("ok", "model", f"{name}{at} has answered in {time.monotonic() - begun:.1f} s: {said!r}")


def _store(options: DoctorOptions) -> Iterator[_Found]:
    address = chosen_address(options.store)
    path = sqlite_path(address)
    if path is not None and not Path(path).exists():
        folder = Path(path).resolve().parent
        if not folder.is_dir() or not os.access(folder, os.W_OK):
            yield _Found("bad", "store", f"{path}: the folder {folder} is not there, or cannot be written")
        else:
            yield _Found("note", "store", f"{path} is not there yet: the first run that is kept makes it")
        return
    import_agents()  # types of theirs stand in what is read
    yield asyncio.run(_tried(address, store_at(address)))


async def _tried(address: str, store: Any) -> _Found:
    """Write, read and remove a value, and list a run."""
    key, value, named = f"{RESERVED}doctor:{new_id()}", new_id().encode(), _without_password(address)
    try:
        async with asyncio.timeout(_SECONDS):
            begun = time.monotonic()
            await store.set(key, value)
            read = await store.get(key)
            await store.delete(key)
            took = time.monotonic() - begun
            apart = await _seconds_apart(address)
    except TimeoutError:
        return _Found("bad", "store", f"{named} has not answered within {_SECONDS:g} s")
    finally:
        await store.aclose()
    if read != value:
        return _Found("bad", "store", f"{named} returned something else than was written")
    if apart is not None and abs(apart) > _APART:
        return _Found("note", "store", f"{named} works, and its clock is {abs(apart):.0f} s {'ahead of' if apart > 0 else 'behind'} that of this machine")
    kinds = "" if isinstance(store, JournalStore) else "; it keeps checkpoints only"
    return _Found("ok", "store", f"{named}: written, read and removed in {took * 1000:.0f} ms{kinds}")


async def _seconds_apart(address: str) -> float | None:
    """By how much the clock of a store's server is ahead; None, where it has none of its own."""
    scheme = address.partition(":")[0].lower()
    if scheme in ("redis", "rediss", "unix"):
        client = importlib.import_module("redis.asyncio").from_url(address)
        try:
            seconds, micros = await client.time()
        finally:
            await client.aclose()
        return float(seconds + micros / 1e6 - time.time())
    if scheme in ("postgres", "postgresql"):
        connection = await importlib.import_module("psycopg").AsyncConnection.connect(address)
        async with connection:
            row = await (await connection.execute("SELECT extract(epoch FROM clock_timestamp())")).fetchone()
        return float(row[0]) - time.time()
    return None


def _without_password(address: str) -> str:
    scheme, found, rest = address.partition("://")
    return f"{scheme}://{rest.rpartition('@')[2]}" if found else address


def _agent(options: DoctorOptions) -> Iterator[_Found]:
    assert options.target is not None
    found = load(options.target)
    root = build_tree(getattr(found, "agent", found))
    names = [node.name for tree in root.trees() for node in tree.walk()]
    yield _Found("ok", "agent", f"{options.target}: {root.name}{f', {len(names)} agents in all' if len(names) > 1 else ''}")
