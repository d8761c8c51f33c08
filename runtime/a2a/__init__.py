"""Agent2Agent: an agent of ours served to others, and an agent of others asked. Needs the extra `a2a`.

    data            what is said there: tasks, messages, artifacts, cards, as plain values of our own
    sdk             the one door to the SDK: what is said when it is not installed
    conversion      our values as the SDK's protobuf, and back
    serving         the door for who serves an agent
    tasks           the tasks of a served agent: one actor for each that something is done with
    push            push notifications: where to, and one outbox for each task
    server          the app: cards, who may ask, the operations by each transport

Importing this must never import the SDK, and nothing of the SDK must ever be in what this room shows.
"""

from .data.actions import A2AAction, ArtifactUpdate, AuthRequired, Reject, Reply, Status
from .data.card import AgentCard, AgentInterface, AgentSkill
from .data.message import A2AMessage, A2ARole, MessageLike
from .data.parts import A2APart, DataPart, FilePart, PartLike, PartsLike, TextPart
from .data.stream_events import StreamEvent, TaskArtifactUpdateEvent, TaskStatusUpdateEvent
from .data.task import Artifact, Task, TaskState, TaskStatus
from .push.policy import WebhookPolicy
from .server.auth import ApiKeys, Authenticator, BearerTokens, Principal
from .server.settings import AgentCardSettings, SkillSettings
from .serving import a2a_app

__all__ = [
    "A2AAction",
    "A2AMessage",
    "A2APart",
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
    "DataPart",
    "FilePart",
    "MessageLike",
    "PartLike",
    "PartsLike",
    "Principal",
    "Reject",
    "Reply",
    "SkillSettings",
    "Status",
    "StreamEvent",
    "Task",
    "TaskArtifactUpdateEvent",
    "TaskState",
    "TaskStatus",
    "TaskStatusUpdateEvent",
    "TextPart",
    "WebhookPolicy",
    "a2a_app",
]
