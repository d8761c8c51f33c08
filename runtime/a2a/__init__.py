"""Agent2Agent: serving an agent to other programs, and calling remote agents.

Needs the extra `a2a`.

    data            tasks, messages, artifacts and cards as plain values
    errors          errors of calls to remote agents
    sdk             reports that the SDK is not installed
    conversion      conversion of the values to and from the SDK's protobuf
    fair_slots      a limit on concurrent work that is fair to clients
    former          compatibility with messages of versions 0.2.5 and 0.3
    client          calling remote agents
    serving         the entry point for serving an agent
    tasks           the tasks of a served agent: one actor for each active one
    push            push notifications: the webhooks, and one outbox for each task
    server          the app: cards, authentication, the operations over each transport

Importing this package does not import the SDK, and its public values contain no type of the SDK.
"""

from .client.client import A2AClient, Credentials, Transport
from .client.given_transport import ClientTransport
from .client.limits import ClientLimits
from .data.actions import A2AAction, ArtifactUpdate, AuthRequired, Reject, Reply, Status
from .data.card import STEPS_EXTENSION, AgentCard, AgentInterface, AgentSkill
from .data.message import A2AMessage, A2ARole, MessageLike, RemoteInterrupt, RemoteQuestion
from .data.parts import A2APart, DataPart, FilePart, PartLike, PartsLike, TextPart
from .data.task import (
    Artifact,
    StreamEvent,
    Task,
    TaskArtifactUpdateEvent,
    TaskState,
    TaskStatus,
    TaskStatusUpdateEvent,
)
from .errors import A2AConnectionError, A2AError, A2AProtocolError, A2ARequestError, RemoteTaskError
from .push.policy import WebhookPolicy
from .server.auth import ApiKeys, Authenticator, BearerTokens, Principal
from .server.settings import AgentCardSettings, ServerLimits, SkillSettings
from .serving import a2a_app

__all__ = [
    "STEPS_EXTENSION",
    "A2AAction",
    "A2AClient",
    "A2AConnectionError",
    "A2AError",
    "A2AMessage",
    "A2APart",
    "A2AProtocolError",
    "A2ARequestError",
    "A2ARole",
    "AgentCard",
    "AgentCardSettings",
    "AgentInterface",
    "AgentSkill",
    "ApiKeys",
    "Artifact",
    "ArtifactUpdate",
    "AuthRequired",
    "Authenticator",
    "BearerTokens",
    "ClientLimits",
    "ClientTransport",
    "Credentials",
    "DataPart",
    "FilePart",
    "MessageLike",
    "PartLike",
    "PartsLike",
    "Principal",
    "Reject",
    "RemoteInterrupt",
    "RemoteQuestion",
    "RemoteTaskError",
    "Reply",
    "ServerLimits",
    "SkillSettings",
    "Status",
    "StreamEvent",
    "Task",
    "TaskArtifactUpdateEvent",
    "TaskState",
    "TaskStatus",
    "TaskStatusUpdateEvent",
    "TextPart",
    "Transport",
    "WebhookPolicy",
    "a2a_app",
]
