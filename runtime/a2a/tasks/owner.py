"""To whom a task belongs.

Owns: `Owner`, a tenant and a subject, and the text by which an owner is named in keys of the store. What belongs to another owner is not found.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from typing import Final

__all__ = ["ANONYMOUS", "Owner"]


@dataclass(frozen=True)
class Owner:
    """A subject of a tenant: both are empty on a server without authentication."""

    tenant: str = ""
    subject: str = ""

    @cached_property
    def key(self) -> str:
        """A short text that no other owner has, which may stand in a key."""
        tenant = self.tenant.encode()
        return blake2b(len(tenant).to_bytes(8, "big") + tenant + self.subject.encode(), digest_size=12).hexdigest()


ANONYMOUS: Final = Owner()
