"""Assembles a server from the parameters of `a2a_app`."""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...durability.store_access import StoreAccess
from ...errors import UsageError
from ...loopback import is_loopback
from ...runner import Runner
from ...stores import MemoryStore
from ...system.system import ActorSystem
from ..push.configs import PushConfigs, Secrets
from ..push.outbox import Outbox
from ..push.policy import WebhookPolicy
from ..push.sender import WebhookSender
from ..sdk import need_sdk
from ..tasks.agent_player import AgentHooksOfUser, AgentPlayer
from ..tasks.asks import Continue, Say
from ..tasks.eviction import evict_again_and_again
from ..tasks.handler_player import HandlerPlayer, check_handlers
from ..tasks.keys import TaskKeys
from ..tasks.recovery import look_for_lost_tasks
from ..tasks.service import ServiceSettings, TaskService
from .app import A2AApp
from .card import make_card
from .gate import Bounds
from .plain_store import MISSING, PlainStore
from .settings import ServerLimits

if TYPE_CHECKING:
    from ...agent.tree import Definition
    from ...stores import Store
    from ..data.task import StreamEvent, Task
    from ..tasks.player import Player
    from ..tasks.task_log import TaskLog
    from .auth import Authenticator
    from .settings import AgentCardSettings

__all__ = ["Serving", "make_app"]


@dataclass(frozen=True, slots=True)
class Serving:
    """The arguments of `a2a_app`."""

    agent: Definition | Runner | None
    card: AgentCardSettings
    store: Store | None
    auth: Authenticator | None
    webhooks: WebhookPolicy | None
    extensions: tuple[str, ...]
    max_body: int
    grpc: str | None
    handlers: object | None
    consolidate: Callable[[Task, Sequence[StreamEvent], Exception | None], Task] | None
    # functions that make ids of tasks, of contexts
    ids: tuple[Callable[[], str] | None, Callable[[], str] | None]
    handler_path: str
    hooks: AgentHooksOfUser
    keep: tuple[float, int]  # the longest time in seconds, and the largest number
    allow_anonymous: bool
    limits: ServerLimits
    logger: logging.Logger


def make_app(serving: Serving) -> A2AApp:
    """Make the app."""
    agent = serving.agent.agent if isinstance(serving.agent, Runner) else serving.agent
    _check_grpc(serving)
    card = make_card(agent, serving.card, serving.auth, serving.extensions, serving.grpc)
    store = serving.store
    if store is None:
        store = serving.agent.store if isinstance(serving.agent, Runner) else None
    is_lasting = store is not None and not isinstance(store, MemoryStore)
    store = store if store is not None else MemoryStore()
    access = StoreAccess(store)
    if not access.is_fenced and store is serving.store:
        serving.logger.warning(MISSING, type(store).__name__)
        store = PlainStore(store)
        access = StoreAccess(store)
    access.require_fences("a2a_app(store=...)")
    if serving.handlers is not None:
        check_handlers(serving.handlers)
    if agent is not None:
        # Raises errors about the agent immediately.
        _runner_in(serving, store, None, is_lasting=is_lasting)
    keys = TaskKeys(agent.name if agent is not None else card.name)

    policy = serving.webhooks or WebhookPolicy()
    configs = (
        PushConfigs(policy, Secrets(policy.secret_key, is_lasting=is_lasting))
        if serving.card.push_notifications
        else None
    )

    only_local = serving.auth is None and not serving.allow_anonymous
    bounds = Bounds(serving.max_body, serving.limits.values, only_local, serving.logger)

    @asynccontextmanager
    async def serve() -> AsyncIterator[TaskService]:
        async with AsyncExitStack() as stack:
            system = serving.agent.system if isinstance(serving.agent, Runner) else None
            # a separate one, independent of any system that the program has entered
            if system is None:
                system = ActorSystem(f"a2a-of-{card.name}")
                system.bind(asyncio.get_running_loop())
                stack.push_async_callback(system.stop)
            runner = (
                _runner_in(serving, store, system, is_lasting=is_lasting)
                if agent is not None
                else None
            )
            service = TaskService(system, access, keys, _settings(serving, runner))
            if configs is not None:
                sender = WebhookSender(policy, configs.secrets)
                stack.push_async_callback(sender.aclose)
                service.outbox = Outbox(service, configs, sender)
                looking = service.run_task(
                    service.outbox.look_for_all(), "looks for webhooks to call"
                )
                stack.push_async_callback(_ended, looking)
            for work, name in (
                (look_for_lost_tasks(service), "looks for lost tasks"),
                (evict_again_and_again(service, *serving.keep), "forgets old tasks"),
            ):
                stack.push_async_callback(_ended, service.run_task(work, name))
            yield service

    return A2AApp(
        card,
        serving.card,
        serving.auth,
        serve,
        configs,
        handler_path=serving.handler_path,
        bounds=bounds,
        grpc=serving.grpc,
    )


def _check_grpc(serving: Serving) -> None:
    """Check the gRPC address: without authentication, it must be local unless the user agrees."""
    if serving.grpc is None:
        return
    need_sdk("a2a_app(grpc=...)", "grpc")
    host, colon, port = serving.grpc.rpartition(":")
    if not colon or not port.isdigit():
        msg = (
            "a2a_app: grpc must be a host and a port, such as '127.0.0.1:50051', got "
            f"{serving.grpc!r}."
        )
        raise UsageError(msg)
    if serving.auth is None and not serving.allow_anonymous and not is_loopback(host):
        msg = (
            f"a2a_app: grpc={serving.grpc!r} needs auth=, because everybody who reaches "
            "that address could use the agent. Pass auth=, or allow_anonymous=True."
        )
        raise UsageError(msg)


async def _ended(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.wait((task,))


def _runner_in(
    serving: Serving, store: Store, system: ActorSystem | None, *, is_lasting: bool
) -> Runner:
    if isinstance(serving.agent, Runner):
        return serving.agent
    assert serving.agent is not None
    return Runner(
        serving.agent, system=system, store=store, durability="step" if is_lasting else "interrupt"
    )


def _settings(serving: Serving, runner: Runner | None) -> ServiceSettings:
    def player(service: TaskService, log: TaskLog, _ask: Say | Continue) -> Player:
        if runner is None:
            return HandlerPlayer(serving.handlers)
        return AgentPlayer(
            runner, service.keys.session(log.kept.owner, log.task.context_id), serving.hooks
        )

    return ServiceSettings(
        serving.ids[0] or _new_id,
        serving.ids[1] or _new_id,
        player,
        runner,
        may_reply=runner is None or _may_reply(runner),
        consolidate=serving.consolidate,
        limits=serving.limits,
        is_shared=serving.auth is not None,
        logger=serving.logger,
    )


def _new_id() -> str:
    return str(uuid.uuid4())


def _may_reply(runner: Runner) -> bool:
    """Return whether one of the agents is custom: only those may answer without a task."""
    left: list[Any] = [runner.agent]
    while left:
        agent = left.pop()
        if not type(agent).__module__.startswith("offbook."):
            return True
        left.extend(getattr(agent, "sub_agents", ()))
    return False
