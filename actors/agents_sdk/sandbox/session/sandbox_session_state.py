"""The state of a sandbox's session.

Owns: `SandboxSessionState`, a form that programs derive theirs from. It must never hold a connection.
"""

from typing import Any
from uuid import UUID, uuid4

from pydantic import BaseModel, Field

__all__ = ["SandboxSessionState"]


class SandboxSessionState(BaseModel, extra="allow", arbitrary_types_allowed=True):
    """What is known of a sandbox's session."""

    type: str
    session_id: UUID = Field(default_factory=uuid4)
    snapshot: Any = None
    manifest: Any = None
    workspace_root_ready: bool = False
