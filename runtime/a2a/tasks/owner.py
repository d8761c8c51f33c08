"""The owner of a task: a tenant and a subject, and its name in keys of the store.

A task of another owner counts as missing.
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
        """A short unique text for this owner, which is safe in a key."""
        tenant = self.tenant.encode()
        return blake2b(
            len(tenant).to_bytes(8, "big") + tenant + self.subject.encode(), digest_size=12
        ).hexdigest()


ANONYMOUS: Final = Owner()
