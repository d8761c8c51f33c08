"""The choice of an interface from a card, by transport and by version of the protocol.

A card is untrusted data, and may name any address. If it was fetched from an address that the
caller has passed, requests go only there, because they carry credentials and messages. A card that
the caller passes directly is trusted.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Final
from urllib.parse import SplitResult, urlsplit

from a2a.types import a2a_pb2 as pb
from a2a.utils.constants import PROTOCOL_VERSION_0_3
from packaging.version import InvalidVersion, Version

from ...errors import UsageError
from ..errors import A2AProtocolError, one_line
from ..sdk import need_sdk

__all__ = ["chosen"]

_SPOKEN: Final = ("JSONRPC", "HTTP+JSON", "GRPC")
_PORTS: Final = {"http": 80, "https": 443}


def chosen(
    card: pb.AgentCard, dialled: str | None, handler_path: str, transport: str | None
) -> pb.AgentCard:
    """Return the card with only the chosen interface.

    `dialled` is the address that the caller has passed, if it was not a card.
    """
    who = f"the agent {one_line(card.name, 80)!r}"
    if not card.supported_interfaces:
        msg = (
            f"{who}: its card has no interface, so it cannot be reached. Ask its operator to add "
            "one."
        )
        raise A2AProtocolError(msg)
    wanted = [
        door
        for door in card.supported_interfaces
        if (door.protocol_binding == transport if transport else door.protocol_binding in _SPOKEN)
    ]
    if not wanted:
        has = ", ".join(
            sorted({one_line(door.protocol_binding, 30) for door in card.supported_interfaces})
        )
        msg = (
            f"{who} must support {transport or 'JSONRPC, HTTP+JSON or GRPC'}, but its card lists "
            f"{has}. Pass another transport=, or omit it."
        )
        raise UsageError(msg) if transport else A2AProtocolError(msg)
    spoken = [door for door in wanted if _generation(door.protocol_version)]
    if not spoken:
        has = ", ".join(sorted({one_line(door.protocol_version, 30) for door in wanted}))
        msg = (
            f"{who} must support version 1.0, 0.3 or 0.2 of Agent2Agent, but its card lists "
            f"{has}. Update the remote server."
        )
        raise A2AProtocolError(msg)
    if not transport:
        if find_spec("grpc") is None and any(door.protocol_binding != "GRPC" for door in spoken):
            spoken = [door for door in spoken if door.protocol_binding != "GRPC"]
        first = spoken[0].protocol_binding  # the server's preference
        spoken = [door for door in spoken if door.protocol_binding == first]
    # The first of several that are equal.
    best = max(spoken, key=lambda door: _generation(door.protocol_version))
    if best.protocol_binding == "GRPC":
        need_sdk("The transport GRPC", "grpc")
    taken = pb.AgentCard()
    taken.CopyFrom(card)
    del taken.supported_interfaces[:]
    door = taken.supported_interfaces.add()
    door.CopyFrom(best)
    if best.protocol_version and _generation(best.protocol_version) == 1:
        # 0.2.5 is handled as 0.3, after filling in its missing fields.
        door.protocol_version = PROTOCOL_VERSION_0_3
    if dialled is not None:
        door.url = _safe_url(best, urlsplit(dialled), handler_path, who)
    return taken


def _generation(version: str) -> int:
    """Return 2 for the current version, 1 for those before it, 0 for all others."""
    if not version:
        return 2
    try:
        parsed = Version(version)
    except InvalidVersion:
        return 0
    return 2 if parsed.major == 1 else int((parsed.major, parsed.minor) in ((0, 2), (0, 3)))


def _safe_url(door: pb.AgentInterface, dialled: SplitResult, handler_path: str, who: str) -> str:
    """Return the address of that interface, at the server that was dialled."""
    if door.protocol_binding == "GRPC":
        host = urlsplit(door.url if "://" in door.url else f"//{door.url}").hostname
        if host != dialled.hostname:
            msg = (
                f"{who}: its card lists {one_line(door.url, 100)!r} for GRPC, on another host "
                f"than {dialled.hostname!r}. If you trust that host, pass the AgentCard instead "
                "of the address."
            )
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
