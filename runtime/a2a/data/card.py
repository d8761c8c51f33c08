"""An agent's card: its name, its skills, and its addresses.

`AgentCard` is a view of the card's JSON, which it retains completely, including fields without an
attribute.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from ...codec.packing import register_type

__all__ = ["STEPS_EXTENSION", "AgentCard", "AgentInterface", "AgentSkill"]


STEPS_EXTENSION: Final = "https://offbook.dev/a2a/steps/v1"
"""The extension whose clients get tool calls, reasoning and transfers as status updates."""


@register_type(name="a2a.AgentInterface")
@dataclass(frozen=True, slots=True)
class AgentInterface:
    """An interface of the agent: its address, its transport, and the version of the protocol.

    The transports are `JSONRPC`, `HTTP+JSON` and `GRPC`.
    """

    url: str
    transport: str
    protocol_version: str = ""
    tenant: str = ""


@register_type(name="a2a.AgentSkill")
@dataclass(frozen=True, slots=True)
class AgentSkill:
    """Something that the agent can do."""

    id: str
    name: str
    description: str = ""
    tags: tuple[str, ...] = ()
    examples: tuple[str, ...] = ()


@register_type(name="a2a.AgentCard")
@dataclass(frozen=True, slots=True)
class AgentCard:
    """An agent's card.

    `document` is the complete JSON; the other fields are read from it.
    """

    name: str
    description: str = ""
    version: str = ""
    interfaces: tuple[AgentInterface, ...] = ()
    skills: tuple[AgentSkill, ...] = ()
    streaming: bool = False
    push_notifications: bool = False
    extended_card: bool = False
    input_modes: tuple[str, ...] = ()
    output_modes: tuple[str, ...] = ()
    document: Mapping[str, object] = field(default_factory=dict, repr=False)

    @property
    def url(self) -> str:
        """The address of its first interface; empty if it has none."""
        return self.interfaces[0].url if self.interfaces else ""
