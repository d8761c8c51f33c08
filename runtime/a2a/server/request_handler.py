"""The operations of the protocol, over any transport, behind the SDK's interface.

Each of the eleven operations validates its request, finds its owner, and calls the tasks.
Unexpected errors become an internal error without a text: the text of an exception never reaches a
client.
"""

from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from a2a.server.context import ServerCallContext
from a2a.server.events import Event
from a2a.server.request_handlers.request_handler import RequestHandler
from a2a.types import a2a_pb2 as pb
from a2a.utils.errors import (
    A2AError,
    ExtendedAgentCardNotConfiguredError,
    ExtensionSupportRequiredError,
    InternalError,
    PushNotificationNotSupportedError,
    UnsupportedOperationError,
)

from ...errors import SystemDraining
from ...log import loggers
from ..tasks.asks import Say
from ..tasks.checks import (
    TooManyMessages,
    check_fields,
    check_history_length,
    check_message,
    check_page_size,
)
from ..tasks.keys import Owner
from ..tasks.listing import apply_history_length, list_tasks
from ..tasks.subscription import Subscription
from .call_context import owner_of
from .gate import too_many

if TYPE_CHECKING:
    from ..push.configs import PushConfigs
    from ..tasks.service import TaskService

__all__ = ["Handler"]

P = ParamSpec("P")
T = TypeVar("T")


def _quiet(method: Callable[P, Awaitable[T]]) -> Callable[P, Coroutine[Any, Any, T]]:
    """Pass on only errors that are meant for clients."""

    @functools.wraps(method)
    async def quiet(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return await method(*args, **kwargs)
        except A2AError as refused:
            if isinstance(refused, TooManyMessages):
                too_many()
            raise
        except Exception as error:  # noqa: BLE001 -- clients see no unexpected error
            logger = next((one.logger for one in args if isinstance(one, Handler)), loggers.a2a)
            raise _hidden(method.__name__, error, logger) from None

    return quiet


def _hidden(name: str, error: Exception, logger: logging.Logger) -> A2AError:
    if isinstance(error, SystemDraining):
        return InternalError("the server is shutting down. Send the request again later")
    logger.error("Agent2Agent: %s has failed.", name, exc_info=error)
    return InternalError()


class Handler(RequestHandler):
    """The operations of one served agent."""

    def __init__(
        self,
        service: Callable[[], Awaitable[TaskService]],
        card: pb.AgentCard,
        extended: Callable[[Owner], pb.AgentCard] | None,
        configs: PushConfigs | None,
    ) -> None:
        self._service = service
        self._card = card
        self._extended = extended
        self._configs = configs
        self.logger = loggers.a2a
        self._modes = frozenset(
            mode.lower()
            for mode in [
                *card.default_input_modes,
                *(mode for skill in card.skills for mode in skill.input_modes),
            ]
        )
        self._required = frozenset(
            extension.uri for extension in card.capabilities.extensions if extension.required
        )

    # --- messages ---

    def _checked(
        self, params: pb.SendMessageRequest, context: ServerCallContext
    ) -> tuple[Owner, frozenset[str]]:
        check_message(params, self._modes)
        check_history_length(params.configuration)
        extensions = frozenset(context.requested_extensions)
        if not self._required <= extensions:
            msg = (
                "This agent requires extensions that the request does not activate: "
                f"{', '.join(sorted(self._required - extensions))}."
            )
            raise ExtensionSupportRequiredError(msg)
        return owner_of(context, params.tenant), extensions

    async def _say(
        self, params: pb.SendMessageRequest, context: ServerCallContext, **how: Any
    ) -> Say:
        owner, extensions = self._checked(params, context)
        config = None
        if params.configuration.HasField("task_push_notification_config"):
            if self._configs is None:
                raise PushNotificationNotSupportedError
            config = await self._configs.checked(params.configuration.task_push_notification_config)
            if task_id := params.message.task_id:
                service = await self._service()
                await service.find(task_id, owner)
                await self._configs.create(service, task_id, config)
                config = None
        metadata = params.metadata if params.HasField("metadata") else None
        return Say(params.message, owner, metadata, extensions=extensions, config=config, **how)

    @_quiet
    async def on_message_send(
        self, params: pb.SendMessageRequest, context: ServerCallContext
    ) -> pb.Task | pb.Message:
        service = await self._service()
        answer: asyncio.Future[pb.Task | pb.Message] = service.system.loop.create_future()
        say = await self._say(
            params, context, answer=answer, at_once=params.configuration.return_immediately
        )
        await service.say(say)
        result = await answer
        return (
            apply_history_length(result, params.configuration)
            if isinstance(result, pb.Task)
            else result
        )

    @asynccontextmanager
    async def streaming(
        self, params: pb.SendMessageRequest, context: ServerCallContext
    ) -> AsyncIterator[Subscription]:
        """Provide the subscription to a message's events, from the first one.

        The client has disconnected when the context ends.
        """
        shows = Subscription()
        service = await _quiet(self._streaming)(params.message.task_id)
        try:
            say = await _quiet(self._say)(params, context, shows=shows)
            await _quiet(service.say)(say)
            yield shows
        finally:
            task_id = shows.task_id
            shows.close()
            service.unfollow(task_id, shows)

    async def on_message_send_stream(
        self, params: pb.SendMessageRequest, context: ServerCallContext
    ) -> AsyncGenerator[Event, None]:
        async with self.streaming(params, context) as shows:
            async for shown in shows.read():
                yield (
                    apply_history_length(shown, params.configuration)
                    if isinstance(shown, pb.Task)
                    else shown
                )

    async def on_subscribe_to_task(
        self, params: pb.SubscribeToTaskRequest, context: ServerCallContext
    ) -> AsyncGenerator[Event, None]:
        check_fields(params)
        service = await self._streaming(params.id)
        log = await _quiet(service.find)(params.id, owner_of(context, params.tenant))
        shows = Subscription(is_following=log.is_interrupted)
        try:
            async with service.following(log, shows, frozenset(context.requested_extensions)):
                async for shown in shows.read():
                    yield shown
        finally:
            shows.close()
            service.unfollow(params.id, shows)

    async def _streaming(self, _task_id: str) -> TaskService:
        if not self._card.capabilities.streaming:
            raise UnsupportedOperationError(
                "This agent does not support streaming. Send the message without streaming."
            )
        return await self._service()

    # --- tasks ---

    @_quiet
    async def on_get_task(
        self, params: pb.GetTaskRequest, context: ServerCallContext
    ) -> pb.Task | None:
        check_fields(params)
        check_history_length(params)
        service = await self._service()
        log = await service.find(params.id, owner_of(context, params.tenant))
        return apply_history_length(service.live(log), params)

    @_quiet
    async def on_list_tasks(
        self, params: pb.ListTasksRequest, context: ServerCallContext
    ) -> pb.ListTasksResponse:
        check_fields(params)
        check_history_length(params)
        check_page_size(params)
        return await list_tasks(await self._service(), params, owner_of(context, params.tenant))

    @_quiet
    async def on_cancel_task(
        self, params: pb.CancelTaskRequest, context: ServerCallContext
    ) -> pb.Task | None:
        check_fields(params)
        service = await self._service()
        await service.find(params.id, owner_of(context, params.tenant))
        return await service.cancel(params.id)

    # --- push notifications ---

    async def _own_configs(
        self, task_id: str, context: ServerCallContext, tenant: str
    ) -> tuple[PushConfigs, TaskService]:
        if self._configs is None:
            raise PushNotificationNotSupportedError
        service = await self._service()
        await service.find(task_id, owner_of(context, tenant))
        return self._configs, service

    @_quiet
    async def on_create_task_push_notification_config(
        self, params: pb.TaskPushNotificationConfig, context: ServerCallContext
    ) -> pb.TaskPushNotificationConfig:
        if self._configs is None:
            raise PushNotificationNotSupportedError
        check_fields(params)
        configs, service = await self._own_configs(params.task_id, context, params.tenant)
        return await configs.create(service, params.task_id, await configs.checked(params))

    @_quiet
    async def on_get_task_push_notification_config(
        self, params: pb.GetTaskPushNotificationConfigRequest, context: ServerCallContext
    ) -> pb.TaskPushNotificationConfig:
        check_fields(params)
        configs, service = await self._own_configs(params.task_id, context, params.tenant)
        return await configs.get(service, params.task_id, params.id)

    @_quiet
    async def on_list_task_push_notification_configs(
        self, params: pb.ListTaskPushNotificationConfigsRequest, context: ServerCallContext
    ) -> pb.ListTaskPushNotificationConfigsResponse:
        check_fields(params)
        configs, service = await self._own_configs(params.task_id, context, params.tenant)
        return await configs.list(service, params)

    @_quiet
    async def on_delete_task_push_notification_config(
        self, params: pb.DeleteTaskPushNotificationConfigRequest, context: ServerCallContext
    ) -> None:
        check_fields(params)
        configs, service = await self._own_configs(params.task_id, context, params.tenant)
        await configs.delete(service, params.task_id, params.id)

    # --- cards ---

    @_quiet
    async def on_get_extended_agent_card(
        self, params: pb.GetExtendedAgentCardRequest, context: ServerCallContext
    ) -> pb.AgentCard:
        if not self._card.capabilities.extended_agent_card:
            raise UnsupportedOperationError("This agent has no extended card. Use its public card.")
        if self._extended is None:
            raise ExtendedAgentCardNotConfiguredError
        return self._extended(owner_of(context, params.tenant))
