"""Authentication: bearer tokens, API keys, signed tokens (JWT, OpenID Connect), or a custom
function.

An `Authenticator` identifies the caller from the headers of a request, and describes the scheme for
the card. Tokens are neither stored in plain text nor logged, and the body is never read.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from ...errors import UsageError
from ...maybe_await import maybe_await
from ..sdk import need_sdk

__all__ = ["ApiKeys", "Authenticator", "BearerTokens", "Principal"]

_BEARER: Final = "bearer"


@dataclass(frozen=True, slots=True)
class Principal:
    """The caller.

    With a tenant, all its calls belong to that tenant; without one, each call names its tenant.
    """

    subject: str
    tenant: str | None = None
    scopes: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        if not isinstance(self.subject, str) or not self.subject:
            msg = (
                f"Principal: subject must be a non-empty string, got {self.subject!r}. It "
                "identifies the owner of tasks."
            )
            raise UsageError(msg)


Known: TypeAlias = Principal | str | None
"""A principal, its subject, or None for an unknown caller."""
Check: TypeAlias = Callable[[Mapping[str, str]], Any]
"""A function, `def` or `async def`, of the headers (lower-case names) to one of these."""


class Authenticator:
    """Identifies the caller of a request by its headers.

        Authenticator(check)                    # returns a Principal, a subject, or None
        Authenticator.jwt(key, audience="...")  # signed tokens, by a key or the keys at `jwks_url`

    `schemes` are the `securitySchemes` of the card.
    """

    __slots__ = ("_check", "challenge", "schemes")

    def __init__(
        self,
        check: Check,
        *,
        schemes: Mapping[str, Mapping[str, object]] | None = None,
        challenge: str = 'Bearer realm="a2a"',
    ) -> None:
        if not callable(check):
            msg = (
                "Authenticator: check must be a function that returns a Principal for the "
                f"headers of a request, got {check!r}."
            )
            raise UsageError(msg)
        self._check = check
        self.schemes = MappingProxyType(
            dict(
                {"bearer": {"httpAuthSecurityScheme": {"scheme": "Bearer"}}}
                if schemes is None
                else schemes
            )
        )
        self.challenge = challenge

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {', '.join(self.schemes)}>"

    async def authenticate(self, headers: Mapping[str, str]) -> Principal | None:
        """Return the principal; None if it is unknown."""
        found: Known = await maybe_await(self._check(headers))
        return (
            Principal(found)
            if isinstance(found, str) and found
            else found
            if isinstance(found, Principal)
            else None
        )

    @classmethod
    def jwt(
        cls,
        key: str | bytes | None = None,
        *,
        jwks_url: str | None = None,
        audience: str | Iterable[str] | None = None,
        issuer: str | None = None,
        algorithms: Iterable[str] = ("RS256", "ES256"),
        tenant_claim: str | None = None,
        leeway: float = 10.0,
        openid_url: str | None = None,
    ) -> Authenticator:
        """Return an authenticator for signed tokens.

        `sub` is the subject; `exp` is required. With `openid_url` the card names the source of
        tokens.

        `audience` is not optional if the issuer also makes tokens for other services: otherwise
        theirs would be accepted.
        """
        if (key is None) == (jwks_url is None):
            raise UsageError("Authenticator.jwt: pass either key= or jwks_url=, and not both.")
        check = _Tokens(key, jwks_url, audience, issuer, tuple(algorithms), tenant_claim, leeway)
        scheme: dict[str, object] = {
            "httpAuthSecurityScheme": {"scheme": "Bearer", "bearerFormat": "JWT"}
        }
        if openid_url is not None:
            scheme = {"openIdConnectSecurityScheme": {"openIdConnectUrl": openid_url}}
        return cls(check, schemes={"openid" if openid_url else "jwt": scheme})


class BearerTokens(Authenticator):
    """Tokens in `Authorization: Bearer ...`, each with its subject or its Principal.

    Instead of a mapping, a function of the token can be passed.
    """

    __slots__ = ()

    def __init__(self, tokens: Mapping[str, Principal | str] | Callable[[str], Any]) -> None:
        known = tokens if callable(tokens) else _known("BearerTokens", tokens)

        def check(headers: Mapping[str, str]) -> Any:
            token = _bearer(headers)
            return None if token is None else known(token)

        super().__init__(check)


class ApiKeys(Authenticator):
    """Keys in a header: each with its subject, or its Principal; or a function of the key."""

    __slots__ = ()

    def __init__(
        self,
        keys: Mapping[str, Principal | str] | Callable[[str], Any],
        *,
        header: str = "X-API-Key",
    ) -> None:
        known = keys if callable(keys) else _known("ApiKeys", keys)
        name = header.lower()

        def check(headers: Mapping[str, str]) -> Any:
            key = headers.get(name)
            return known(key) if key else None

        scheme = {"apiKeySecurityScheme": {"location": "header", "name": header}}
        super().__init__(
            check, schemes={"apiKey": scheme}, challenge=f'ApiKey realm="a2a", header="{header}"'
        )


def _known(kind: str, tokens: Mapping[str, Principal | str]) -> Callable[[str], Principal | None]:
    """Return a lookup by hashes: its duration reveals nothing about a token."""
    if not isinstance(tokens, Mapping) or not tokens:
        msg = (
            f"{kind}: tokens must be a dict of at least one token and its subject, or a "
            f"function, got {tokens!r}."
        )
        raise UsageError(msg)
    found: dict[bytes, Principal] = {}
    for token, owner in tokens.items():
        if not isinstance(token, str) or not token.strip():
            msg = (
                f"{kind}: tokens must not contain an empty token. Remove it, or check the "
                "variable that it is read from."
            )
            raise UsageError(msg)
        found[_digest(token)] = owner if isinstance(owner, Principal) else Principal(owner)
    return lambda token: found.get(_digest(token))


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "replace")).digest()


def _bearer(headers: Mapping[str, str]) -> str | None:
    kind, _, token = headers.get("authorization", "").partition(" ")
    token = token.strip()
    return token if kind.lower() == _BEARER and token else None


class _Tokens:
    """Signed tokens."""

    def __init__(
        self,
        key: str | bytes | None,
        jwks_url: str | None,
        audience: str | Iterable[str] | None,
        issuer: str | None,
        algorithms: tuple[str, ...],
        tenant_claim: str | None,
        leeway: float,
    ) -> None:
        need_sdk("Authenticator.jwt", "jwt")
        import jwt  # noqa: PLC0415 -- only those need it who use it

        self._jwt = jwt
        self._key = key
        self._keys = None if jwks_url is None else jwt.PyJWKClient(jwks_url, timeout=10)
        self._audience = (
            audience if audience is None or isinstance(audience, str) else list(audience)
        )
        self._issuer = issuer
        self._algorithms = list(algorithms)
        self._tenant_claim = tenant_claim
        self._leeway = leeway

    async def __call__(self, headers: Mapping[str, str]) -> Principal | None:
        token = _bearer(headers)
        if token is None:
            return None
        try:
            # Keys are fetched in a thread, so that the event loop is not blocked.
            key: Any = (
                self._key
                if self._keys is None
                else (await asyncio.to_thread(self._keys.get_signing_key_from_jwt, token)).key
            )
            claims = self._jwt.decode(
                token,
                key,
                algorithms=self._algorithms,
                audience=self._audience,
                issuer=self._issuer,
                leeway=self._leeway,
                options={"require": ["exp", "sub"], "verify_aud": self._audience is not None},
            )
        except self._jwt.PyJWTError:
            return None
        subject = claims["sub"]
        tenant = claims.get(self._tenant_claim) if self._tenant_claim is not None else None
        if (
            not isinstance(subject, str)
            or not subject
            or (self._tenant_claim is not None and not isinstance(tenant, str))
        ):
            return None
        scope = claims.get("scope")
        return Principal(
            subject, tenant, frozenset(scope.split()) if isinstance(scope, str) else frozenset()
        )
