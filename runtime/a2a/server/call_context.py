"""The caller of an operation, as the SDK passes it along: the principal found by the authenticator.

A client names its tenant itself, so a principal with a tenant may name no other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from a2a.auth.user import UnauthenticatedUser, User
from a2a.extensions.common import HTTP_EXTENSION_HEADER, get_requested_extensions
from a2a.server.context import ServerCallContext
from a2a.server.routes.common import ServerCallContextBuilder
from a2a.utils.errors import InvalidParamsError, TaskNotFoundError

from ..tasks.keys import Owner
from .auth import Principal

if TYPE_CHECKING:
    from starlette.requests import Request

__all__ = ["CallContextBuilder", "KnownUser", "owner_of"]

_LONGEST_TENANT: Final = 256


class KnownUser(User):
    """A principal in the form of the SDK's users."""

    def __init__(self, principal: Principal) -> None:
        self.principal = principal

    @property
    def is_authenticated(self) -> bool:
        return True

    @property
    def user_name(self) -> str:
        return self.principal.subject


class CallContextBuilder(ServerCallContextBuilder):
    """Makes the context of a call from its request."""

    def build(self, request: Request) -> ServerCallContext:
        principal = request.scope.get("offbook.principal")
        return ServerCallContext(
            user=UnauthenticatedUser() if principal is None else KnownUser(principal),
            state={"headers": dict(request.headers)},
            requested_extensions=get_requested_extensions(
                request.headers.getlist(HTTP_EXTENSION_HEADER)
            ),
        )


def owner_of(context: ServerCallContext, tenant: str = "") -> Owner:
    """Return the owner of this call's results, which also determines the visible tasks."""
    asked = context.tenant or tenant
    if len(asked) > _LONGEST_TENANT:
        msg = f"tenant must have at most {_LONGEST_TENANT} characters, got {len(asked)}."
        raise InvalidParamsError(msg)
    user = context.user
    if not isinstance(user, KnownUser):
        return Owner(asked)
    principal = user.principal
    if principal.tenant is not None and asked and asked != principal.tenant:
        raise TaskNotFoundError
    return Owner(principal.tenant if principal.tenant is not None else asked, principal.subject)
