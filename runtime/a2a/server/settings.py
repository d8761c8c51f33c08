"""The settings of the card of a served agent: plain values, without types of the SDK."""

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
    """The settings of the card that the agent itself does not define.

    Without `url`, the card has the address at which the client requests it.

    `extended` is the card for authenticated clients; its unset fields come from this one. With a
    `signing_key` (a private key in PEM, or a secret), the card is signed.
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
