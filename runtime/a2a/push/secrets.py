"""Encryption of the tokens and credentials of webhooks. Secrets are never logged."""

from __future__ import annotations

import base64
import hashlib
import os
from typing import Final

from cryptography.fernet import Fernet, InvalidToken

from ...log import loggers

__all__ = ["Secrets", "masked"]

_VARIABLE: Final = "OFFBOOK_A2A_KEY"
_SHOWS_ITS_END: Final = 16
"""The minimum length of a secret whose last letters are shown."""


class Secrets:
    """Encrypts and decrypts."""

    __slots__ = ("_fernet", "_is_lost_soon")

    def __init__(self, key: str | None, *, is_lasting: bool) -> None:
        key = key or os.environ.get(_VARIABLE)
        self._is_lost_soon = key is None and is_lasting
        self._fernet = Fernet(
            Fernet.generate_key()
            if key is None
            else base64.urlsafe_b64encode(hashlib.sha256(key.encode()).digest())
        )

    def lock(self, text: str) -> bytes:
        if text and self._is_lost_soon:
            self._is_lost_soon = False
            loggers.a2a.warning(
                "Agent2Agent: the secrets of webhooks are kept under a key that ends with "
                "this process. Give WebhookPolicy(secret_key=...), or set %s.",
                _VARIABLE,
            )
        return self._fernet.encrypt(text.encode()) if text else b""

    def unlock(self, locked: bytes) -> str | None:
        """Decrypt; None if another key was used."""
        try:
            return self._fernet.decrypt(locked).decode() if locked else ""
        except InvalidToken:
            return None


def masked(text: str) -> str:
    """Return the masked form of a secret."""
    return "" if not text else f"***{text[-4:]}" if len(text) >= _SHOWS_ITS_END else "***"
