"""Sessions of sandboxes.

Owns the form of their state: `sandbox_session_state`. It must never begin one.
"""

from .sandbox_session_state import SandboxSessionState

__all__ = ["SandboxSessionState"]
