"""The settings of the card of a served agent: plain values, without types of the SDK."""

from __future__ import annotations

from dataclasses import dataclass, field, fields

from ...errors import UsageError

__all__ = ["AgentCardSettings", "ServerLimits", "SkillSettings"]


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


@dataclass(frozen=True, slots=True)
class ServerLimits:
    """Limits for a served agent.

    A client is a tenant and a subject; without `auth=`, all clients are one.
    """

    at_once: int = 1_000
    """Tasks that run at the same time. Others wait; the clients take turns."""
    at_once_for_a_client: int | None = None
    """Of these, the maximum for one client; half of them by default, and all without `auth=`."""
    accepted: int = 5_000
    """Messages of one client that are being processed or wait.

    More are refused: HTTP 429 with Retry-After.
    """
    tasks: int = 10_000
    """Inactive tasks that are retained for one client, within the `keep_tasks` of all.

    Without `auth=`, `keep_tasks` is the only bound.
    """
    values: int = 20_000
    """Values in one request: each element of a list and each member of an object counts."""
    page: int = 4 * 1024 * 1024
    """Bytes of one page of a list of tasks. A task that is larger is a page by itself."""

    def __post_init__(self) -> None:
        for one in fields(self):
            value = getattr(self, one.name)
            if value is None and one.name == "at_once_for_a_client":
                continue
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                msg = (
                    f"ServerLimits({one.name}={value!r}): {one.name} must be a whole number, 1 "
                    "or more."
                )
                raise UsageError(msg)
