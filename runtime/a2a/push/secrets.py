"""What webhooks are sent with and nobody else may know: tokens and credentials, as they are kept.

Owns: the key, and what is shown in place of a secret. It must never log one.
"""

from __future__ import annotations

import base64
import hashlib
import os
from typing import Final

from cryptography.fernet import Fernet, InvalidToken

from ...log import logger

__all__ = ["Secrets", "masked"]

_VARIABLE: Final = "UNDERSTUDY_A2A_KEY"


class Secrets:
    """Locks and unlocks."""

    __slots__ = ("_fernet",)

    def __init__(self, key: str | None, *, is_lasting: bool) -> None:
        key = key or os.environ.get(_VARIABLE)
        if key is None and is_lasting:
            logger.warning(
                "Agent2Agent: the secrets of webhooks are kept under a key that ends with this process. Give WebhookPolicy(secret_key=...), or set %s.",
                _VARIABLE,
            )
        self._fernet = Fernet(Fernet.generate_key() if key is None else base64.urlsafe_b64encode(hashlib.sha256(key.encode()).digest()))

    def lock(self, text: str) -> bytes:
        return self._fernet.encrypt(text.encode()) if text else b""

    def unlock(self, locked: bytes) -> str | None:
        """None, if it was locked with another key."""
        try:
            return self._fernet.decrypt(locked).decode() if locked else ""
        except InvalidToken:
            return None


def masked(text: str) -> str:
    """What is shown of a secret."""
    return "" if not text else f"***{text[-4:]}" if len(text) >= 16 else "***"
