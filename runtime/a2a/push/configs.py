"""The webhooks of tasks, stored with encrypted secrets.

Secrets are never returned in full.
"""

from __future__ import annotations

import base64
import hashlib
import os
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from a2a.types import a2a_pb2 as pb
from a2a.utils.errors import InvalidParamsError, TaskNotFoundError
from cryptography.fernet import Fernet, InvalidToken

from ...codec.packing import pack, unpack
from ...errors import WriteRefused
from ...log import loggers
from ...stores.writes import Expect, Put, Remove, Write
from ..tasks.checks import LONGEST_ID
from .policy import WebhookPolicy, WebhookRefused

if TYPE_CHECKING:
    from ..tasks.keys import TaskKeys
    from ..tasks.service import TaskService

__all__ = ["Hook", "PushConfigs", "Secrets", "masked", "read_hooks"]


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
                "Agent2Agent: the secrets of webhooks are encrypted with a key that exists only "
                "in this process. Pass WebhookPolicy(secret_key=...), or set %s.",
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


_TRIES: Final = 10
_LONGEST_SECRET: Final = 8_192


@dataclass(frozen=True, slots=True)
class Hook:
    """One webhook of a task. The secrets are encrypted; next to each is its masked form."""

    id: str
    url: str
    sent: int = 0  # the number of the last change that was delivered, or that preceded it
    token: bytes = b""
    token_shown: str = ""
    scheme: str = ""
    credentials: bytes = b""
    credentials_shown: str = ""

    def kept(self) -> list[object]:
        return [
            self.id,
            self.url,
            self.sent,
            self.token,
            self.token_shown,
            self.scheme,
            self.credentials,
            self.credentials_shown,
        ]


def read_hooks(data: bytes | None) -> dict[str, Hook]:
    """Decode the stored webhooks, by their ids."""
    said: Any = [] if data is None else unpack(data)
    return {one[0]: Hook(*one) for one in said}


def _packed(hooks: dict[str, Hook]) -> bytes:
    return pack([hook.kept() for hook in hooks.values()])


class PushConfigs:
    """The webhooks of all tasks."""

    def __init__(self, policy: WebhookPolicy, secrets: Secrets) -> None:
        self.policy = policy
        self.secrets = secrets

    async def checked(self, config: pb.TaskPushNotificationConfig) -> pb.TaskPushNotificationConfig:
        """Return the configuration if it is acceptable."""
        for name, value in (
            ("id", config.id),
            ("token", config.token),
            ("authentication.credentials", config.authentication.credentials),
        ):
            longest = LONGEST_ID if name == "id" else _LONGEST_SECRET
            if len(value) > longest:
                msg = (
                    f"pushNotificationConfig.{name} must have at most {longest} characters, got "
                    f"{len(value)}."
                )
                raise InvalidParamsError(msg)
        for name, value in (
            ("token", config.token),
            ("authentication", config.authentication.scheme + config.authentication.credentials),
        ):
            if not value.isprintable() or not value.isascii():
                msg = (
                    f"pushNotificationConfig.{name} must have only characters that an HTTP "
                    "header can have. Remove control and non-ASCII characters."
                )
                raise InvalidParamsError(msg)
        try:
            await self.policy.check(config.url, registers=True)
        except WebhookRefused as refused:
            msg = f"pushNotificationConfig.url is not accepted: {refused}."
            raise InvalidParamsError(msg) from None
        return config

    def made(self, config: pb.TaskPushNotificationConfig, number: int) -> Hook:
        secrets, authentication = self.secrets, config.authentication
        return Hook(
            config.id or str(uuid.uuid4()),
            config.url,
            number,
            secrets.lock(config.token),
            masked(config.token),
            authentication.scheme,
            secrets.lock(authentication.credentials),
            masked(authentication.credentials),
        )

    def first_writes(
        self, keys: TaskKeys, task_id: str, config: pb.TaskPushNotificationConfig
    ) -> list[Write]:
        """Return the writes for a task that starts with a webhook."""
        hook = self.made(config, 0)
        return [
            Put(keys.configs(task_id), _packed({hook.id: hook})),
            Put(keys.outbox(task_id), b"1"),
        ]

    async def create(
        self, service: TaskService, task_id: str, config: pb.TaskPushNotificationConfig
    ) -> pb.TaskPushNotificationConfig:
        log = await service.load(task_id)
        if log is None:
            raise TaskNotFoundError
        hook = self.made(config, log.number)

        def add(hooks: dict[str, Hook]) -> None:
            if hook.id not in hooks and len(hooks) >= self.policy.most_for_a_task:
                msg = (
                    f"A task may have at most {self.policy.most_for_a_task} push notification "
                    "configs. Delete one of them first."
                )
                raise InvalidParamsError(msg)
            hooks[hook.id] = hook

        await self._change(service, task_id, add)
        if service.outbox is not None:
            service.outbox.add(task_id)
        return shown(hook, task_id)

    async def get(
        self, service: TaskService, task_id: str, hook_id: str
    ) -> pb.TaskPushNotificationConfig:
        hook = (await self.hooks(service, task_id)).get(hook_id)
        if hook is None:
            raise TaskNotFoundError(
                "Push notification config not found. List the configs of the task for their ids."
            )
        return shown(hook, task_id)

    async def list(
        self, service: TaskService, params: pb.ListTaskPushNotificationConfigsRequest
    ) -> pb.ListTaskPushNotificationConfigsResponse:
        hooks = sorted(
            (await self.hooks(service, params.task_id)).values(), key=lambda hook: hook.id
        )
        if params.page_token:
            hooks = [hook for hook in hooks if hook.id > params.page_token]
        response = pb.ListTaskPushNotificationConfigsResponse()
        page = hooks[: params.page_size] if params.page_size > 0 else hooks
        response.configs.extend(shown(hook, params.task_id) for hook in page)
        if len(page) < len(hooks):
            response.next_page_token = page[-1].id
        return response

    async def delete(self, service: TaskService, task_id: str, hook_id: str) -> None:
        """Delete a webhook, if it exists."""
        await self._change(service, task_id, lambda hooks: hooks.pop(hook_id, None))

    async def sent(self, service: TaskService, task_id: str, hook_id: str, number: int) -> None:
        """Record that the webhook has received the changes up to that number."""

        def move(hooks: dict[str, Hook]) -> None:
            hook = hooks.get(hook_id)
            if hook is not None and hook.sent < number:
                hooks[hook_id] = Hook(hook.id, hook.url, number, *hook.kept()[3:])  # type: ignore[arg-type]  # its own fields

        await self._change(service, task_id, move)

    async def hooks(self, service: TaskService, task_id: str) -> dict[str, Hook]:
        return read_hooks(await service.access.get(service.keys.configs(task_id)))

    async def _change(self, service: TaskService, task_id: str, change: Any) -> None:
        """Change the stored webhooks, even if another process does so at the same time."""
        key = service.keys.configs(task_id)
        for _ in range(_TRIES):
            found = await service.access.get(key)
            hooks = read_hooks(found)
            before = dict(hooks)
            change(hooks)
            if hooks == before:
                return
            writes: list[Write] = [Expect(key, found)]
            writes += (
                [Put(key, _packed(hooks)), Put(service.keys.outbox(task_id), b"1")]
                if hooks
                else [Remove(key), Remove(service.keys.outbox(task_id))]
            )
            try:
                await service.access.commit(None, writes)
            except WriteRefused:
                continue
            return
        msg = (
            f"the webhooks of task {task_id} are being changed by too many requests at once. Try "
            "again."
        )
        raise RuntimeError(msg)


def shown(hook: Hook, task_id: str) -> pb.TaskPushNotificationConfig:
    """Return the configuration, as clients see it."""
    config = pb.TaskPushNotificationConfig(
        id=hook.id, task_id=task_id, url=hook.url, token=hook.token_shown
    )
    if hook.scheme or hook.credentials:
        config.authentication.CopyFrom(
            pb.AuthenticationInfo(scheme=hook.scheme, credentials=hook.credentials_shown)
        )
    return config
