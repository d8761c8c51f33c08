"""What the card of a served agent says, as the program that serves it gives it.

Owns: `AgentCardSettings` and `SkillSettings`, plain values. They must never hold anything of the SDK.
"""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["AgentCardSettings", "SkillSettings"]


@dataclass(frozen=True, slots=True)
class SkillSettings:
    """Something that the agent can do."""

    id: str
    name: str
    description: str
    tags: tuple[str, ...] = ()
    examples: tuple[str, ...] = ()
    input_modes: tuple[str, ...] = ()
    output_modes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AgentCardSettings:
    """What the card says beside what the agent itself does. Without `url`, the address at which a client asks for the card.

    `extended` is the card for those who may ask; it takes from this one what it leaves open. With a `signing_key` (a private key in PEM, or a secret), the card
    is signed.
    """

    name: str | None = None
    description: str | None = None
    version: str = "1.0.0"
    url: str | None = None
    skills: tuple[SkillSettings, ...] = ()
    provider: str | None = None
    provider_url: str | None = None
    documentation_url: str | None = None
    icon_url: str | None = None
    input_modes: tuple[str, ...] = ("text/plain", "application/json")
    output_modes: tuple[str, ...] = ("text/plain", "application/json")
    streaming: bool = True
    push_notifications: bool = True
    extended: AgentCardSettings | None = None
    signing_key: str | bytes | None = field(default=None, repr=False)
    signing_key_id: str = "a2a"
    signing_algorithm: str = "ES256"
