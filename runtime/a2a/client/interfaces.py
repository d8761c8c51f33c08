"""Which of a card's doors is taken.

A card is what a stranger says of himself, and may name any address. Where it was fetched from an address that the caller has given, requests go there and
nowhere else: with them go credentials, and what is said. A card that the caller gives himself is taken at its word.

Owns: the choice, by transport and by version of the protocol.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Final
from urllib.parse import SplitResult, urlsplit

from a2a.types import a2a_pb2 as pb
from packaging.version import InvalidVersion, Version

from ...errors import UsageError
from ..errors import A2AProtocolError, one_line
from ..sdk import need_sdk

__all__ = ["chosen"]

_SPOKEN: Final = ("JSONRPC", "HTTP+JSON", "GRPC")
_PORTS: Final = {"http": 80, "https": 443}


def chosen(card: pb.AgentCard, dialled: str | None, handler_path: str, transport: str | None) -> pb.AgentCard:
    """The card with the one interface that is taken. `dialled` is the address that the caller has given, if it was no card."""
    who = f"the agent {one_line(card.name, 80)!r}"
    if not card.supported_interfaces:
        msg = f"{who}: its card names no interface, so that it cannot be reached."
        raise A2AProtocolError(msg)
    wanted = [door for door in card.supported_interfaces if (door.protocol_binding == transport if transport else door.protocol_binding in _SPOKEN)]
    if not wanted:
        has = ", ".join(sorted({one_line(door.protocol_binding, 30) for door in card.supported_interfaces}))
        msg = f"{who} speaks {has}, and not {transport or 'JSONRPC, HTTP+JSON or GRPC'}."
        raise UsageError(msg) if transport else A2AProtocolError(msg)
    spoken = [door for door in wanted if _generation(door.protocol_version)]
    if not spoken:
        has = ", ".join(sorted({one_line(door.protocol_version, 30) for door in wanted}))
        msg = f"{who} speaks version {has} of Agent2Agent; versions 1.0 and 0.3 are spoken here."
        raise A2AProtocolError(msg)
    if not transport:
        if find_spec("grpc") is None and any(door.protocol_binding != "GRPC" for door in spoken):
            spoken = [door for door in spoken if door.protocol_binding != "GRPC"]
        first = spoken[0].protocol_binding  # the server's preference
        spoken = [door for door in spoken if door.protocol_binding == first]
    best = max(spoken, key=lambda door: _generation(door.protocol_version))  # the first of several that are equal
    if best.protocol_binding == "GRPC":
        need_sdk("The transport GRPC", "grpc")
    taken = pb.AgentCard()
    taken.CopyFrom(card)
    del taken.supported_interfaces[:]
    door = taken.supported_interfaces.add()
    door.CopyFrom(best)
    if dialled is not None:
        door.url = _safe_url(best, urlsplit(dialled), handler_path, who)
    return taken


def _generation(version: str) -> int:
    """2 for the present version, 1 for the one before it, 0 for all others."""
    if not version:
        return 2
    try:
        parsed = Version(version)
    except InvalidVersion:
        return 0
    return 2 if parsed.major == 1 else int((parsed.major, parsed.minor) == (0, 3))


def _safe_url(door: pb.AgentInterface, dialled: SplitResult, handler_path: str, who: str) -> str:
    """The address of that interface, at the server that was dialled."""
    if door.protocol_binding == "GRPC":
        host = urlsplit(door.url if "://" in door.url else f"//{door.url}").hostname
        if host != dialled.hostname:
            msg = f"{who}: its card names {one_line(door.url, 100)!r} for GRPC, which is another host than {dialled.hostname!r}: to go there, give the card."
            raise A2AProtocolError(msg)
        return str(door.url)
    named = urlsplit(door.url)
    if _origin(named) == _origin(dialled):
        return str(door.url)
    base = f"{dialled.scheme}://{dialled.netloc}"
    if door.protocol_binding == "JSONRPC":
        return f"{base}{dialled.path.rstrip('/')}{handler_path}"
    return f"{base}{named.path}"


def _origin(url: SplitResult) -> tuple[str, str | None, int | None]:
    try:
        port = url.port
    except ValueError:
        port = -1
    return url.scheme, url.hostname, port if port is not None else _PORTS.get(url.scheme)
