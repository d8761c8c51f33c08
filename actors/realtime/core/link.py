"""The connection of a session, and its replacement after a loss.

It covers reading and writing, epochs, reconnecting, the replay of the conversation, and the renewal
of an old connection. A message of an older epoch has no effect. Until the replay has ended, nothing
else is sent.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from typing import TYPE_CHECKING, Any, Final

from ....runtime.clock import Timer
from ....runtime.clock import sleep as clock_sleep
from ....runtime.data.chat import new_id
from ....runtime.errors import ModelError, UsageError
from ....runtime.tasks import start_task
from ..config import Reconnect
from ..events import RealtimeReconnected
from ..items import RealtimeItem
from ..model import RealtimeConnection, RealtimeModelConfig
from ..model_events import (
    RealtimeConnectionStatus,
    RealtimeModelConnectionStatusEvent,
    RealtimeModelEndOfStreamEvent,
)
from ..model_inputs import RealtimeModelSendEvent, RealtimeModelSendItem
from ..state.replay import replayed_items
from ..state.settings import AgentSettings

if TYPE_CHECKING:
    from .session_core import SessionCore

__all__ = ["Link"]

_LAST_MINUTES: Final = 240.0
"""Seconds after `max_age` at which a new connection is made without a pause.

The server closes a connection after 60 minutes.
"""


class Link:
    """The connections of one session, one at a time."""

    def __init__(self, core: SessionCore) -> None:
        self._core = core
        self.epoch = 0
        self.connection: RealtimeConnection | None = None
        self.is_ready = False
        self.replaying: dict[str, str] = {}  # replayed items, by the event id of the message
        self._reader: asyncio.Task[None] | None = None
        self._writer: asyncio.Task[None] | None = None
        self._timers: list[Timer] = []
        self._is_old = False
        self._renewing = False
        self._lost_at = 0.0
        self._dropped_before = 0.0
        self._asks = False  # whether a response is requested after the replay
        self.replayed: set[str] = set()  # the ids of the replayed items
        self.dialled: AgentSettings | None = None  # the settings of the newest connection

    @property
    def rules(self) -> Reconnect | None:
        return self._core.config.get("reconnect", Reconnect())

    # --- connecting ---

    async def dial(self, attempt: int = 1) -> RealtimeConnection:
        """Make a connection with the settings of the current agent."""
        core = self._core
        self.dialled = core.current
        options: RealtimeModelConfig = {
            **core.model_config,
            "initial_model_settings": core.connect_settings(),  # type: ignore[typeddict-item]  # flat settings
        }
        with core.span("realtime.connect", attempt=attempt, replayed=len(core.conversation)):
            connection = await core.model.connect(options)
        if core.config.get("raw_events") == "wire" and hasattr(connection, "shows_wire"):
            connection.shows_wire = True
        return connection

    def attach(self, connection: RealtimeConnection) -> None:
        """Use this connection from now on."""
        core = self._core
        self.epoch += 1
        self.connection = connection
        self.replaying = {}
        self._is_old = self._renewing = False
        self._reader = core.child(self._read(connection, self.epoch), None, "reader")
        if self._writer is None:
            self._writer = core.child(self._write(), None, "writer")
        for timer in self._timers:
            timer.cancel()
        rules = self.rules
        if rules is not None and rules.max_age is not None:
            self._timers = [
                core.later(rules.max_age, self._grows_old),
                core.later(rules.max_age + _LAST_MINUTES, self._is_too_old, self.epoch),
            ]
        self.status("connected")

    def status(self, status: RealtimeConnectionStatus) -> None:
        """Show the status of the connection."""
        self._core.show_raw(RealtimeModelConnectionStatusEvent(status))

    async def _read(self, connection: RealtimeConnection, epoch: int) -> None:
        core = self._core
        take, report = core.inbound.take, core.report
        try:
            async for event in connection.events():
                report(take, epoch, event)
        except asyncio.CancelledError:
            raise
        except Exception as error:  # noqa: BLE001 -- reported to the session
            report(self.lost, epoch, error)
        else:
            report(self.lost, epoch, None)

    async def _write(self) -> None:
        core = self._core
        while True:
            entry = await core.outbox.next()
            connection, epoch = self.connection, self.epoch
            assert connection is not None
            try:
                await connection.send(entry.event)
            except asyncio.CancelledError:
                raise
            except UsageError as error:
                core.report(core.error, error, "not_possible")
            except Exception as error:  # noqa: BLE001 -- reported to the session
                if epoch == self.epoch:
                    core.outbox.hold()
                core.report(self.lost, epoch, error)
                continue
            if entry.sent is not None:
                entry.sent()

    def send_update(self, event: RealtimeModelSendEvent) -> Coroutine[Any, Any, None]:
        """Send a session update. Return when it is in force."""
        return self._update(event, self.connection)

    async def _update(
        self, event: RealtimeModelSendEvent, connection: RealtimeConnection | None
    ) -> None:
        core = self._core
        assert connection is not None
        limit: float = core.config.get("settings_timeout", 5.0)
        sending = start_task(connection.send(event), "the connection of a session")
        timer = core.clock.call_later(limit, sending.cancel)
        try:
            await sending
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                sending.cancel()
                raise
            msg = (
                f"the realtime server did not confirm the settings within {limit:g} s. Try "
                "again, or raise config['settings_timeout']"
            )
            raise ModelError(msg, kind="timeout", retryable=True) from None
        finally:
            timer.cancel()

    # --- loss ---

    def lost(self, epoch: int, error: Exception | None) -> None:
        """Handle the end of the connection."""
        core = self._core
        if epoch != self.epoch or core.is_closing:
            return
        if error is None:
            self.status("disconnected")
            core.show_raw(RealtimeModelEndOfStreamEvent())
            core.lifecycle.finish(None)
            return
        if self.rules is None or not (
            isinstance(error, OSError) or (isinstance(error, ModelError) and error.retryable)
        ):
            self.status("disconnected")
            core.lifecycle.fatal(error)
            return
        self._begin_again(error)

    def _begin_again(self, error: Exception) -> None:
        """Abandon the old connection: settle its pending work, and make another one."""
        core = self._core
        self.epoch += 1
        self.is_ready = False
        self._lost_at, self._dropped_before = core.now(), core.outbox.dropped_ms
        self._asks = core.lifecycle.settle_connection()
        self._drop(self.connection)
        self.status("disconnected")
        core.child(self._dial_again(error), self._dialled, "connecting again")

    def begin_again_for(self, why: str) -> None:
        """Make another connection, because this one does not support a requested change."""
        self._begin_again(ModelError(why, retryable=True))

    def ask(self) -> None:
        """Request a response after the replay."""
        self._asks = True

    def _drop(self, connection: RealtimeConnection | None) -> None:
        reader, self._reader = self._reader, None
        if reader is not None:
            reader.cancel()
        if connection is not None:
            self._core.child(_closed(connection), None, "closing a connection")

    async def _dial_again(self, error: Exception) -> tuple[RealtimeConnection, int]:
        core, rules = self._core, self.rules
        assert rules is not None
        began = core.now()
        core.report(self.status, "connecting")
        for attempt in range(rules.attempts):
            if attempt:
                await clock_sleep(rules.backoff.delay(attempt - 1), core.clock)
            if core.now() - began > rules.within:
                break
            try:
                return await self.dial(attempt + 1), attempt + 1
            except ModelError as failed:
                error = failed
                if not failed.retryable:
                    raise
        kind = error.kind if isinstance(error, ModelError) else "connection"
        msg = f"the connection of the session was lost, and reconnecting failed: {error}"
        raise ModelError(msg, kind=kind) from error

    def _dialled(
        self, found: tuple[RealtimeConnection, int] | None, error: BaseException | None
    ) -> None:
        core = self._core
        if found is None:
            core.lifecycle.fatal(
                error
                if isinstance(error, Exception)
                else ModelError(
                    "the session could not reconnect to the realtime server: the attempt was "
                    "cancelled"
                )
            )
            return
        connection, attempt = found
        if core.is_closing:
            core.child(_closed(connection), None, "closing a connection")
            return
        self.attach(connection)
        self.replay(attempt)

    # --- replay ---

    def replay(self, attempt: int) -> None:
        """Send the conversation over the new connection, then continue.

        `attempt` is 0 when the session starts.
        """
        core = self._core
        connection, epoch = self.connection, self.epoch
        assert connection is not None
        if connection.keeps_conversation and attempt:
            self._replayed(attempt, epoch, 0, None)
            return
        core.child(
            self._put_all(connection, epoch),
            lambda count, error: self._replayed(attempt, epoch, count, error),
            "replay",
        )

    async def _put_all(self, connection: RealtimeConnection, epoch: int) -> int:
        core = self._core
        items = await replayed_items(
            core.conversation.snapshot(),
            core.config.get("replay", "all"),
            core.lifecycle.known_unsent(),
        )
        await self._put(connection, items)
        if epoch == self.epoch:
            self.replayed = {one.item_id for one in items}
        return len(items)

    async def _put(self, connection: RealtimeConnection, items: Sequence[RealtimeItem]) -> None:
        for item in items:
            event_id = f"event_{new_id()}"
            self.replaying[event_id] = item.item_id
            await connection.send(RealtimeModelSendItem(item, event_id))

    def _replayed(
        self, attempt: int, epoch: int, count: int | None, error: BaseException | None
    ) -> None:
        core = self._core
        if epoch != self.epoch or core.is_closing:
            return
        if error is not None:
            self.lost(
                epoch,
                error
                if isinstance(error, Exception)
                else ModelError(
                    "the history could not be sent to the new connection: the attempt was "
                    "cancelled. The session reconnects",
                    retryable=True,
                ),
            )
            return
        connection = self.connection
        assert connection is not None
        self.is_ready = True
        core.connected(known=connection.keeps_conversation and attempt > 0)
        core.outbox.resume()
        if attempt:
            seconds = core.now() - self._lost_at
            dropped = core.outbox.dropped_ms - self._dropped_before
            core.show(
                RealtimeReconnected,
                attempt=attempt,
                seconds=seconds,
                replayed=count or 0,
                dropped_audio_ms=dropped,
                resumed=connection.keeps_conversation,
            )
        core.lifecycle.go_on(asks=self._asks)
        self._asks = False

    # --- renewal ---

    def _grows_old(self) -> None:
        self._is_old = True

    def _is_too_old(self, epoch: int) -> None:
        if epoch == self.epoch and not self._core.is_closing:
            self._begin_again(
                ModelError(
                    "the connection reached its maximum age and is being replaced", retryable=True
                )
            )

    def look(self) -> None:
        """Use a pause to renew an old connection.

        The new connection receives the conversation before the old one is closed.
        """
        core = self._core
        if not self._is_old or self._renewing or not self.is_ready or not core.lifecycle.is_pause():
            return
        self._renewing = True
        core.child(self._renew(core.activity), self._renewed, "renewing the connection")

    async def _renew(self, activity: int) -> tuple[RealtimeConnection, int, Sequence[RealtimeItem]]:
        core = self._core
        connection = await self.dial()
        try:
            items = await replayed_items(
                core.conversation.snapshot(),
                core.config.get("replay", "all"),
                core.lifecycle.known_unsent(),
            )
            replaying, self.replaying = self.replaying, {}
            del replaying
            await self._put(connection, items)
        except BaseException:
            await connection.close()
            raise
        return connection, activity, items

    def _renewed(
        self,
        found: tuple[RealtimeConnection, int, Sequence[RealtimeItem]] | None,
        error: BaseException | None,
    ) -> None:
        core = self._core
        self._renewing = False
        if found is None:
            core.error(
                error
                or ModelError(
                    "the ageing connection could not be replaced: the attempt was cancelled. The "
                    "session tries again later"
                ),
                "renewal_failed",
            )
            rules = self.rules
            self._is_old = False
            self._timers.append(
                core.later(_LAST_MINUTES / 8 if rules is not None else 0, self._grows_old)
            )
            return
        connection, activity, items = found
        if activity != core.activity or not core.lifecycle.is_pause() or core.is_closing:
            # The session is active again, so renew at the next pause.
            core.child(_closed(connection), None, "closing a connection")
            return
        replaying = self.replaying
        old, began = self.connection, core.now()
        self._drop(old)
        self.attach(connection)
        self.replaying, self.replayed = replaying, {one.item_id for one in items}
        core.responses.void()
        core.playback.void_all()
        core.connected(known=False)
        core.show(
            RealtimeReconnected,
            attempt=1,
            seconds=core.now() - began,
            replayed=len(items),
            dropped_audio_ms=0.0,
            resumed=False,
        )

    # --- the end ---

    async def close(self) -> None:
        """Close the connection. Nothing is sent after this."""
        self.is_ready = False
        for timer in self._timers:
            timer.cancel()
        connection, self.connection = self.connection, None
        if connection is not None:
            await connection.close()


async def _closed(connection: RealtimeConnection) -> None:
    await connection.close()
