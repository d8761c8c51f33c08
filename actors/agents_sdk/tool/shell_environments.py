"""Where a shell runs.

Owns: the forms of the environments, of this machine and of containers at OpenAI, with their skills and networks. It must never start one.
"""

from __future__ import annotations

from typing import Literal, NotRequired, TypeAlias

from typing_extensions import TypedDict

__all__ = [
    "ShellToolContainerAutoEnvironment",
    "ShellToolContainerNetworkPolicy",
    "ShellToolContainerNetworkPolicyAllowlist",
    "ShellToolContainerNetworkPolicyDisabled",
    "ShellToolContainerNetworkPolicyDomainSecret",
    "ShellToolContainerReferenceEnvironment",
    "ShellToolContainerSkill",
    "ShellToolEnvironment",
    "ShellToolHostedEnvironment",
    "ShellToolInlineSkill",
    "ShellToolInlineSkillSource",
    "ShellToolLocalEnvironment",
    "ShellToolLocalSkill",
    "ShellToolSkillReference",
]


class ShellToolLocalSkill(TypedDict):
    """A skill in a folder of this machine."""

    description: str
    name: str
    path: str


class ShellToolSkillReference(TypedDict):
    """A skill that is kept at OpenAI."""

    type: Literal["skill_reference"]
    skill_id: str
    version: NotRequired[str]


class ShellToolInlineSkillSource(TypedDict):
    """The files of a skill, as one ZIP file in base64."""

    data: str
    media_type: Literal["application/zip"]
    type: Literal["base64"]


class ShellToolInlineSkill(TypedDict):
    """A skill that is sent along."""

    description: str
    name: str
    source: ShellToolInlineSkillSource
    type: Literal["inline"]


ShellToolContainerSkill: TypeAlias = ShellToolSkillReference | ShellToolInlineSkill


class ShellToolContainerNetworkPolicyDomainSecret(TypedDict):
    """A secret that goes to one domain alone."""

    domain: str
    name: str
    value: str


class ShellToolContainerNetworkPolicyAllowlist(TypedDict):
    """These domains may be reached."""

    allowed_domains: list[str]
    type: Literal["allowlist"]
    domain_secrets: NotRequired[list[ShellToolContainerNetworkPolicyDomainSecret]]


class ShellToolContainerNetworkPolicyDisabled(TypedDict):
    """Nothing may be reached."""

    type: Literal["disabled"]


ShellToolContainerNetworkPolicy: TypeAlias = ShellToolContainerNetworkPolicyAllowlist | ShellToolContainerNetworkPolicyDisabled


class ShellToolLocalEnvironment(TypedDict):
    """This machine."""

    type: Literal["local"]
    skills: NotRequired[list[ShellToolLocalSkill]]


class ShellToolContainerAutoEnvironment(TypedDict):
    """A container that OpenAI makes for the call."""

    type: Literal["container_auto"]
    file_ids: NotRequired[list[str]]
    memory_limit: NotRequired[Literal["1g", "4g", "16g", "64g"] | None]
    network_policy: NotRequired[ShellToolContainerNetworkPolicy]
    skills: NotRequired[list[ShellToolContainerSkill]]


class ShellToolContainerReferenceEnvironment(TypedDict):
    """A container that there is."""

    type: Literal["container_reference"]
    container_id: str


ShellToolHostedEnvironment: TypeAlias = ShellToolContainerAutoEnvironment | ShellToolContainerReferenceEnvironment
ShellToolEnvironment: TypeAlias = ShellToolLocalEnvironment | ShellToolHostedEnvironment
