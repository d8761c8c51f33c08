"""`offbook doctor`: checks whether this machine has the requirements of agents, a line for each.

It never prints a key, and changes nothing except a temporary value in the store.
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
from ..durability.copies.store_marks import refusal
from ..durability.store_access import StoreAccess
from ..durability.store_keys import RESERVED
from ..environment import environment
from ..errors import OffbookError, UsageError, text_of
from ..models import ModelRequest, model_from_env
from ..stores import JournalStore
from ..stores.postgres.risks import note_of_role
from ..stores.postgres.risks import risks_of as postgres_risks
from ..stores.redis.risks import risks_of as redis_risks
from ..stores.sqlite.risks import risks_of as sqlite_risks
from .loading import import_agents, load
from .stores import chosen_address, sqlite_path, store_at
from .terminal.screen import Screen, one_line

__all__ = ["DoctorOptions", "examine"]

_CORE: Final = ("pykka", "openai", "pydantic", "msgpack", "aiohttp")
_EXTRAS: Final[Mapping[str, tuple[str, ...]]] = {
    "fast": ("uvloop",),
    "redis": ("redis",),
    "postgres": ("psycopg",),
    "encryption": ("cryptography",),
    "a2a": ("a2a-sdk", "uvicorn"),
    "mcp": ("mcp",),
    "otel": ("opentelemetry-sdk", "opentelemetry-exporter-otlp-proto-http", "prometheus-client"),
    "console": ("starlette", "uvicorn"),
    "realtime": ("websockets",),
    "ray": ("ray",),
}
_KEYS: Final = ("OPENAI_API_KEY", "ARK_API_KEY")
_APART: Final = 5.0
"""The tolerated difference between this machine's clock and a store's server, in seconds."""
_SECONDS: Final = 10.0
_MOST: Final = 2000
"""The longest text about one check, in characters."""
_MARGIN: Final = 11
"""The width of the mark and the name, in columns."""

Mark = Literal["ok", "note", "bad"]
_SIGNS: Final[Mapping[Mark, tuple[str, str, str]]] = {
    "ok": ("✓", "ok", "green"),
    "note": ("·", "- ", "yellow"),
    "bad": ("✗", "!!", "bold red"),
}


@dataclass(frozen=True, slots=True)
class DoctorOptions:
    """The options of the command."""

    target: str | None = None
    store: str | None = None
    ask: bool = False


@dataclass(frozen=True, slots=True)
class _Found:
    mark: Mark
    name: str
    text: str


def examine(options: DoctorOptions) -> int:
    """Run all checks. Returns 1 if one of them shows a real problem."""
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
        except Exception as error:  # noqa: BLE001 -- any error is the finding
            what = "" if isinstance(error, OffbookError) else f"{type(error).__name__}: "
            found = [_Found("bad", name, f"{what}{text_of(error)}")]
        for one in found:
            sign, plain, style = _SIGNS[one.mark]
            screen.write(f"{plain if screen.is_plain else sign} ", style)
            screen.say(f"{one.name:<9}{_shown(one.text, screen)}")
            is_bad = is_bad or one.mark == "bad"
    return 1 if is_bad else 0


def _shown(text: str, screen: Screen) -> str:
    """Format a text as one line; on a terminal as many as needed: the advice is at its end."""
    text = one_line(text, _MOST)
    room = max(20, screen.width - _MARGIN)
    return (
        f"\n{' ' * _MARGIN}".join(wrap(text, room, break_on_hyphens=False))
        if screen.is_terminal
        else text
    )


def _versions(_options: DoctorOptions) -> Iterator[_Found]:
    packages = ", ".join(f"{name} {version(name)}" for name in _CORE)
    yield _Found(
        "ok",
        "versions",
        f"offbook {version('offbook')}, Python {platform.python_version()}, "
        f"{platform.system()}; {packages}",
    )


def _extras(_options: DoctorOptions) -> Iterator[_Found]:
    there = {
        name: all(_version(package) for package in packages) for name, packages in _EXTRAS.items()
    }
    missing = [name for name, is_there in there.items() if not is_there]
    has = f"installed: {', '.join(name for name, is_there in there.items() if is_there) or 'none'}"
    yield _Found(
        "ok",
        "extras",
        has
        + (
            f"; not installed: {', '.join(missing)} (pip install 'offbook[NAME]')"
            if missing
            else ""
        ),
    )


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _clock(_options: DoctorOptions) -> Iterator[_Found]:
    if boottime() > boottime():
        yield _Found("bad", "clock", "the machine's clock goes backwards: leases cannot rely on it")
    elif hasattr(time, "CLOCK_BOOTTIME"):
        yield _Found(
            "ok", "clock", "includes the time that the machine is suspended, and never jumps"
        )
    else:
        yield _Found(
            "note",
            "clock",
            "excludes the time that the machine is suspended: a lease then lasts longer than "
            "it should",
        )


def _keys(_options: DoctorOptions) -> Iterator[_Found]:
    values = environment()
    found = [name for name in _KEYS if values.get(name, "").strip()]
    where = " or ".join(_KEYS)
    yield (
        _Found("ok", "keys", f"{', '.join(found)} set")
        if found
        else _Found("note", "keys", f"no {where}: custom and scripted models need none")
    )


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
        yield _Found("ok", "model", f"{name}{at}; not called (--ask calls it)")
        return

    async def ask() -> str:
        try:
            async with asyncio.timeout(60):
                return (
                    await model.generate(ModelRequest((Message.user("Say the word ready."),)))
                ).text
        finally:
            close = getattr(model, "aclose", None)
            if close is not None:
                await close()

    begun = time.monotonic()
    said = asyncio.run(ask())
    yield _Found(
        "ok", "model", f"{name}{at} answered in {time.monotonic() - begun:.1f} s: {said!r}"
    )


def _store(options: DoctorOptions) -> Iterator[_Found]:
    address = chosen_address(options.store)
    path = sqlite_path(address)
    if path is not None and not Path(path).exists():
        folder = Path(path).resolve().parent
        if not folder.is_dir() or not os.access(folder, os.W_OK):
            yield _Found(
                "bad", "store", f"{path}: the folder {folder} does not exist, or is not writable"
            )
        else:
            yield _Found(
                "note", "store", f"{path} does not exist yet: the first stored run creates it"
            )
        return
    import_agents()  # the store may contain their types
    yield asyncio.run(_tried(address, store_at(address)))
    yield from (_Found("note", "risk", risk) for risk in _risks(address))


async def _tried(address: str, store: Any) -> _Found:
    """Write, read and remove a value, and check the environment of the store."""
    key, value, named = (
        f"{RESERVED}doctor:{new_id()}",
        new_id().encode(),
        _without_password(address),
    )
    try:
        async with asyncio.timeout(_SECONDS):
            begun = time.monotonic()
            await store.set(key, value)
            read = await store.get(key)
            await store.delete(key)
            took = time.monotonic() - begun
            apart = await _seconds_apart(address)
            why = await refusal(StoreAccess(store), takes=False)
    except TimeoutError:
        return _Found("bad", "store", f"{named} did not answer within {_SECONDS:g} s")
    finally:
        await store.aclose()
    if read != value:
        return _Found("bad", "store", f"{named} did not return the value that was written")
    if apart is not None and abs(apart) > _APART:
        return _Found(
            "note",
            "store",
            f"{named} works, but its clock is {abs(apart):.0f} s "
            f"{'ahead of' if apart > 0 else 'behind'} that of this machine",
        )
    if why is not None:
        return _Found("note", "store", why)
    kinds = "" if isinstance(store, JournalStore) else "; it stores checkpoints only"
    return _Found(
        "ok", "store", f"{named}: wrote, read and deleted a value in {took * 1000:.0f} ms{kinds}"
    )


async def _seconds_apart(address: str) -> float | None:
    """Return how far the clock of a store's server is ahead; None if it has no server."""
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
            row = await (
                await connection.execute("SELECT extract(epoch FROM clock_timestamp())")
            ).fetchone()
        return float(row[0]) - time.time()
    return None


def _risks(address: str) -> list[str]:
    """Return the settings of a store that can lose data."""
    scheme = address.partition(":")[0].lower()
    if scheme in ("redis", "rediss", "unix"):
        client = importlib.import_module("redis").Redis.from_url(address)
        try:
            return redis_risks(client)
        finally:
            client.close()
    if scheme in ("postgres", "postgresql"):
        with importlib.import_module("psycopg").connect(address, autocommit=True) as connection:
            role = note_of_role(connection)
            return [*postgres_risks(connection), *([] if role is None else [role])]
    path = sqlite_path(address)
    return [] if path is None else sqlite_risks(os.path.realpath(path))


def _without_password(address: str) -> str:
    scheme, found, rest = address.partition("://")
    return f"{scheme}://{rest.rpartition('@')[2]}" if found else address


def _agent(options: DoctorOptions) -> Iterator[_Found]:
    assert options.target is not None
    found = load(options.target)
    root = build_tree(getattr(found, "agent", found))
    names = [node.name for tree in root.trees() for node in tree.walk()]
    yield _Found(
        "ok",
        "agent",
        f"{options.target}: {root.name}{f', {len(names)} agents' if len(names) > 1 else ''}",
    )
