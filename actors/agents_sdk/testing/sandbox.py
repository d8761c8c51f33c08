"""Sandboxes of tests.

Owns: that they are refused by name. It must never make one.
"""

from ..missing import refuse

__all__ = ["scripted_sandbox_session"]


def scripted_sandbox_session(steps: object = (), **options: object) -> object:
    """Refused: there are no sandboxes here."""
    refuse("testing.scripted_sandbox_session")
