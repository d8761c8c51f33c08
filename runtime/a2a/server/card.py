"""The card of a served agent: its name and description, addresses, skills and authentication.

The card only names features that the server has.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from a2a.types import a2a_pb2 as pb
from a2a.utils.constants import PROTOCOL_VERSION_0_3, PROTOCOL_VERSION_1_0, TransportProtocol
from google.protobuf.json_format import ParseDict

from ...errors import UsageError
from ..data.card import STEPS_EXTENSION
from ..sdk import need_sdk
from .settings import AgentCardSettings, SkillSettings

if TYPE_CHECKING:
    from ...agent.tree import Definition
    from .auth import Authenticator

__all__ = ["extended_card", "make_card", "signer_of", "with_address"]

_STEPS: Final = (
    "What happens inside a task: tool calls and their results, reasoning, transfers between "
    "agents, as metadata of updates."
)


def make_card(
    agent: Definition | None,
    settings: AgentCardSettings,
    auth: Authenticator | None,
    extensions: Sequence[str],
    grpc: str | None,
) -> pb.AgentCard:
    """Make the card without addresses. A `UsageError` names a missing field."""
    name = settings.name or getattr(agent, "name", "") or ""
    description = settings.description or getattr(agent, "description", "") or ""
    if not name:
        raise UsageError("a2a_app: the card needs a name. Pass card=AgentCardSettings(name='...').")
    if not description:
        msg = (
            f"a2a_app: agent {name!r} has no description, by which clients choose it. Pass "
            "description= to the agent, or card=AgentCardSettings(description='...')."
        )
        raise UsageError(msg)
    skills = settings.skills or (SkillSettings("default", name, description, tags=("agent",)),)
    card = pb.AgentCard(
        name=name,
        description=description,
        version=settings.version,
        documentation_url=settings.documentation_url or "",
        icon_url=settings.icon_url or "",
        default_input_modes=settings.input_modes,
        default_output_modes=settings.output_modes,
        skills=[_skill(skill) for skill in skills],
        capabilities=pb.AgentCapabilities(
            streaming=settings.streaming,
            push_notifications=settings.push_notifications,
            extended_agent_card=settings.extended is not None,
        ),
    )
    if settings.provider:
        card.provider.CopyFrom(
            pb.AgentProvider(organization=settings.provider, url=settings.provider_url or "")
        )
    card.capabilities.extensions.add(uri=STEPS_EXTENSION, description=_STEPS)
    for uri in extensions:
        card.capabilities.extensions.add(uri=uri)
    if auth is not None:
        for scheme, said in auth.schemes.items():
            ParseDict(dict(said), card.security_schemes[scheme])
            card.security_requirements.add().schemes[scheme].SetInParent()
    if grpc is not None:
        card.supported_interfaces.add(
            url=grpc,
            protocol_binding=TransportProtocol.GRPC.value,
            protocol_version=PROTOCOL_VERSION_1_0,
        )
    return card


def _skill(skill: SkillSettings) -> pb.AgentSkill:
    return pb.AgentSkill(
        id=skill.id,
        name=skill.name,
        description=skill.description,
        tags=skill.tags or ("agent",),
        examples=skill.examples,
        input_modes=skill.input_modes,
        output_modes=skill.output_modes,
    )


def with_address(card: pb.AgentCard, url: str, *, former: bool = False) -> pb.AgentCard:
    """Return the card of a server at that address; `former`: with interfaces for 0.3."""
    found = pb.AgentCard()
    found.CopyFrom(card)
    others = list(card.supported_interfaces)
    del found.supported_interfaces[:]
    for version in (
        (PROTOCOL_VERSION_1_0, PROTOCOL_VERSION_0_3) if former else (PROTOCOL_VERSION_1_0,)
    ):
        for binding in (TransportProtocol.JSONRPC, TransportProtocol.HTTP_JSON):
            found.supported_interfaces.add(
                url=url, protocol_binding=binding.value, protocol_version=version
            )
        if version == PROTOCOL_VERSION_1_0:
            found.supported_interfaces.extend(others)
    return found


def extended_card(card: pb.AgentCard, settings: AgentCardSettings) -> pb.AgentCard:
    """Return the card for authenticated clients: the public card, overridden by its own fields."""
    own = settings.extended
    assert own is not None
    found = pb.AgentCard()
    found.CopyFrom(card)
    for field in ("name", "description", "documentation_url", "icon_url"):
        if value := getattr(own, field):
            setattr(found, field, value)
    if own.version != AgentCardSettings.__dataclass_fields__["version"].default:
        found.version = own.version
    if own.skills:
        del found.skills[:]
        found.skills.extend(_skill(skill) for skill in own.skills)
    return found


def signer_of(settings: AgentCardSettings) -> Callable[[pb.AgentCard], pb.AgentCard] | None:
    """Return a function that signs cards; None if they are not signed."""
    if settings.signing_key is None:
        return None
    if settings.url is None:
        raise UsageError(
            "AgentCardSettings(signing_key=...): a signed card needs a fixed address. Pass url=, "
            "too."
        )
    need_sdk("AgentCardSettings(signing_key=...)", "jwt")
    from a2a.utils.signing import create_agent_card_signer  # noqa: PLC0415 -- it needs what only those need who sign

    header = {
        "kid": settings.signing_key_id,
        "alg": settings.signing_algorithm,
        "jku": None,
        "typ": "JOSE",
    }
    return create_agent_card_signer(
        settings.signing_key,
        {name: value for name, value in header.items() if value is not None},  # type: ignore[arg-type]  # `jku` is optional
    )
