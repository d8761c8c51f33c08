"""The entry point for serving an agent: `a2a_app`.

Importing this module does not import the SDK: that happens when something is served.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from ..errors import UsageError
from ..log import loggers
from ..runner import Runner
from .sdk import need_sdk
from .server.auth import Authenticator
from .server.settings import AgentCardSettings, ServerLimits

if TYPE_CHECKING:
    from ..agent.options import OptionsLike
    from ..agent.tree import Definition
    from ..data.chat import Message
    from ..stores import Store
    from .data.message import A2AMessage
    from .data.task import StreamEvent, Task
    from .push.policy import WebhookPolicy
    from .server.app import A2AApp

__all__ = ["a2a_app"]

Asked: TypeAlias = "Callable[[Task, A2AMessage, dict[str, object]], Any]"


def a2a_app(
    agent: Definition | Runner | None = None,
    *,
    card: AgentCardSettings | None = None,
    store: Store | None = None,
    auth: Authenticator | Callable[[Mapping[str, str]], Any] | None = None,
    webhooks: WebhookPolicy | None = None,
    extensions: Sequence[str] = (),
    max_body: int = 4 * 1024 * 1024,
    grpc: str | None = None,
    handlers: object | None = None,
    consolidate: Callable[[Task, Sequence[StreamEvent], Exception | None], Task] | None = None,
    new_task_id: Callable[[], str] | None = None,
    new_context_id: Callable[[], str] | None = None,
    handler_path: str = "/a2a",
    run_options: Callable[[Task, A2AMessage, dict[str, object]], OptionsLike] | None = None,
    history: Callable[[Sequence[A2AMessage]], Sequence[Message]] | None = None,
    resume: Asked | None = None,
    keep_seconds: float = 7 * 86_400.0,
    keep_tasks: int = 100_000,
    allow_anonymous: bool = False,
    limits: ServerLimits | None = None,
    logger: logging.Logger | None = None,
) -> A2AApp:
    """Return an ASGI app that serves the agent over Agent2Agent: JSON-RPC and HTTP+JSON below
    `handler_path`, for clients of 1.0 and 0.3.

        app = a2a_app(agent, store=SQLiteStore("tasks.db"), auth=BearerTokens({"secret": "alice"}))

    Tasks are in the store, and outlive the process if it does: those in progress are resumed, or
    fail if that is impossible. `handlers` replaces the agent: an object with `async def
    message(request)`, `stream(request, writer)` and `cancel(request)`, of which one of the first
    two is enough. `keep_seconds` and `keep_tasks` limit how long, and how many, inactive tasks are
    retained; `limits` bounds the usage of each client. Without `auth`, an address of this machine
    refuses other host names and web pages of other origins, unless `allow_anonymous` is set.
    `logger` receives the log records of this server.
    """
    need_sdk("a2a_app()")
    need_sdk("a2a_app()", "sse_starlette")
    from .server.making import Serving, make_app  # noqa: PLC0415 -- it imports the SDK
    from .tasks.agent_player import AgentHooksOfUser  # noqa: PLC0415 -- as above

    _check(agent, handlers, keep_seconds, keep_tasks)
    if auth is not None and not isinstance(auth, Authenticator):
        auth = Authenticator(auth)
    hooks = AgentHooksOfUser(run_options, history, resume)
    ids = (new_task_id, new_context_id)
    keep = (keep_seconds, keep_tasks)
    bounds = limits if limits is not None else ServerLimits()
    settings = card or AgentCardSettings()
    log = logger if logger is not None else loggers.a2a
    what = (
        agent,
        settings,
        store,
        auth,
        webhooks,
        tuple(extensions),
        max_body,
        grpc,
        handlers,
        consolidate,
        ids,
        handler_path,
    )
    return make_app(Serving(*what, hooks, keep, allow_anonymous, bounds, log))


def _check(agent: object, handlers: object, keep_seconds: float, keep_tasks: int) -> None:
    if (agent is None) == (handlers is None):
        raise UsageError("a2a_app: pass an agent (or a Runner), or handlers=, and not both.")
    if (
        agent is not None
        and not isinstance(agent, Runner)
        and not callable(getattr(agent, "run", None))
    ):
        msg = f"a2a_app: agent must be an agent, or a Runner of one, got {agent!r}."
        raise UsageError(msg)
    if not keep_seconds > 0 or keep_tasks < 1:
        msg = (
            "a2a_app: keep_seconds must be a number of seconds above 0 and keep_tasks 1 "
            f"or more, got keep_seconds={keep_seconds!r}, keep_tasks={keep_tasks!r}."
        )
        raise UsageError(msg)
