"""The state of a sandbox's session.

Owns: `SandboxSessionState`, a form that programs derive theirs from. It must never hold a connection.
"""

from typing import Any, ClassVar
from uuid import UUID, uuid4

from pydantic import BaseModel, ConfigDict, Field

__all__ = ["SandboxSessionState"]


class SandboxSessionState(BaseModel):
    """What is known of a sandbox's session."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="allow", arbitrary_types_allowed=True)

    type: str
    session_id: UUID = Field(default_factory=uuid4)
    snapshot: Any = None
    manifest: Any = None
    workspace_root_ready: bool = False
