"""Delivers the changes of tasks to their webhooks, each task's changes in order.

The queue is the task's journal, and each webhook's position is stored with its address: both
outlive the process if the store does. A task never waits for its webhooks, and an address is
checked immediately before each call.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from a2a.types import a2a_pb2 as pb

from ...clock import sleep
from ...durability.lease import Lease
from ...durability.leases import leases_of
from ...errors import RunLost
from ...stores.writes import Put, Remove, Write
from ..fair_slots import FairSlots
from ..tasks.asks import Continue, Say

if TYPE_CHECKING:
    from ..tasks.keys import Owner
    from ..tasks.service import TaskService
    from ..tasks.task_log import TaskLog
    from .configs import Hook, PushConfigs
    from .sender import WebhookSender

__all__ = ["Outbox"]

_AT_ONCE: Final = 64
"""The number of webhooks that are called concurrently."""
_LOOK_SECONDS: Final = 30.0


class Outbox:
    """All webhooks of one served agent. A plain object, for use on the event loop."""

    def __init__(self, service: TaskService, configs: PushConfigs, sender: WebhookSender) -> None:
        self._service = service
        self._configs = configs
        self._sender = sender
        self._wakes: dict[str, asyncio.Event] = {}  # for each task with a delivery in progress
        self._known: set[str] = set()  # active tasks that have webhooks
        self._slots = FairSlots(_AT_ONCE, _AT_ONCE // 2 if service.is_shared else _AT_ONCE)

    # --- events of tasks ---

    def writes(self, log: TaskLog, begun_by: Say | Continue | None) -> list[Write]:
        """Return the writes that accompany a task's changes in one step."""
        task_id = log.task.id
        if isinstance(begun_by, Say) and begun_by.config is not None:
            self._known.add(task_id)
            return self._configs.first_writes(self._service.keys, task_id, begun_by.config)
        return [Put(self._service.keys.outbox(task_id), b"1")] if task_id in self._known else []

    async def prepare(self, task_id: str) -> None:
        """Check whether a stored task that becomes active has webhooks."""
        if await self._service.access.get(self._service.keys.configs(task_id)) is not None:
            self._known.add(task_id)

    def add(self, task_id: str) -> None:
        """Note that a webhook was registered here."""
        self._known.add(task_id)
        self.look(task_id)

    def look(self, task_id: str) -> None:
        """Start a delivery after a change of the task."""
        if task_id not in self._known:
            return
        wake = self._wakes.get(task_id)
        if wake is not None:
            wake.set()
        else:
            self._start(task_id)

    def _start(self, task_id: str) -> None:
        if task_id not in self._wakes:
            wake = self._wakes[task_id] = asyncio.Event()
            wake.set()
            self._service.run_task(self._send_for(task_id, wake), f"webhooks of task {task_id}")

    async def look_for_all(self) -> None:
        """Deliver what other processes have left, in a loop: one may be lost at any time."""
        service = self._service
        while True:
            try:
                for key in await service.access.keys(service.keys.outbox_prefix):
                    self._start(key.removeprefix(service.keys.outbox_prefix))
            except Exception:
                service.logger.exception(
                    "The waiting webhook calls could not be read from the store."
                )
            await sleep(_LOOK_SECONDS, service.system.clock)

    # --- sending ---

    async def _send_for(self, task_id: str, wake: asyncio.Event) -> None:
        """Deliver the changes of one task, and return. Only one process does so at a time."""
        service = self._service
        leases = leases_of(service.system)
        lease = Lease(service.keys.outbox(task_id), f"the webhooks of task {task_id}", lambda: None)
        try:
            if not await leases.take(service.access, lease):
                wake.clear()  # another process delivers
                return
            try:
                while wake.is_set():
                    wake.clear()
                    is_over = await self._send_all(task_id)
                    if is_over and not wake.is_set():
                        await lease.commit([Remove(lease.key)], then="forget")
                        self._known.discard(task_id)
            finally:
                await leases.give_back(lease)
        except RunLost:
            wake.clear()
        except Exception:
            wake.clear()
            self._service.logger.exception(
                "The webhooks of task %s could not be called. They will be tried again.", task_id
            )
        finally:
            self._wakes.pop(task_id, None)
            if wake.is_set() and service.system.is_running:
                self._start(task_id)

    async def _send_all(self, task_id: str) -> bool:
        """Bring each webhook up to date.

        Returns whether nothing more can follow.
        """
        hooks = await self._configs.hooks(self._service, task_id)
        log = await self._service.load(task_id)
        if not hooks or log is None:
            return True
        await asyncio.gather(
            *(self._bring(task_id, log.kept.owner, hook) for hook in hooks.values())
        )
        if log.is_at_rest:
            self._known.discard(task_id)
        return log.is_terminal

    async def _bring(self, task_id: str, owner: Owner, hook: Hook) -> None:
        """Send one webhook the changes that it has not received, in order."""
        service, number = self._service, hook.sent
        records = await service.access.read(service.keys.task(task_id), number)
        for record in records:
            if not await self._deliver(task_id, owner, hook, pb.StreamResponse.FromString(record)):
                number += len(records)
                break
            number += 1
            await self._configs.sent(service, task_id, hook.id, number)
        if number > hook.sent:
            await self._configs.sent(service, task_id, hook.id, number)

    async def _send(self, owner: Owner, hook: Hook, update: pb.StreamResponse) -> str:
        """Send when the owner has a slot: silent webhooks delay only their own owner."""
        if not self._slots.take_now(owner):
            place = self._slots.wait(owner)
            try:
                await place
            except asyncio.CancelledError:
                self._slots.give_up(owner, place)
                raise
        try:
            return await self._sender.send(hook, update)
        finally:
            self._slots.leave(owner)

    async def _deliver(
        self, task_id: str, owner: Owner, hook: Hook, update: pb.StreamResponse
    ) -> bool:
        """Send one change, with retries.

        Returns False if the webhook was deleted or is given up.
        """
        policy, delay = self._configs.policy, self._configs.policy.first_delay
        why = ""
        for attempt in range(policy.attempts):
            if attempt:
                await sleep(delay, self._service.system.clock)
                delay = min(2 * delay, policy.longest_delay)
                if hook.id not in await self._configs.hooks(self._service, task_id):
                    return False  # it was deleted in the meantime
            why = await self._send(owner, hook, update)
            if not why:
                return True
        self._service.logger.warning(
            "A webhook of task %s has failed %d times, and is not called again: %s",
            task_id,
            policy.attempts,
            why,
        )
        return False
