"""Sandboxes in processes of this machine.

Owns: the names of the client and of its state. It must never start a process.
"""

from typing import Literal

from ...missing import refuse
from ..session.sandbox_session_state import SandboxSessionState

__all__ = ["UnixLocalSandboxClient", "UnixLocalSandboxSessionState"]


class UnixLocalSandboxSessionState(SandboxSessionState):
    """The state of such a sandbox."""

    type: Literal["unix_local"] = "unix_local"


class UnixLocalSandboxClient:
    """Refused: there are no sandboxes here."""

    def __init__(self, *_args: object, **_options: object) -> None:
        refuse("UnixLocalSandboxClient")
