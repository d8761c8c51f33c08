"""The life cycle of a session, from its opening to its end.

It covers the first and last steps, limits, and the pending work of a lost connection. At the end,
no child task is left.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ....runtime.clock import Deadline
from ....runtime.data.agent_input import AgentInput
from ....runtime.data.outcome import FINISHED
from ....runtime.data.run_result import RunResult, RunStatus
from ....runtime.durability.leases import Busy
from ....runtime.durability.store_access import StoreAccess
from ....runtime.errors import CheckpointError, OffbookError, RunLost
from ....runtime.log import loggers
from ....runtime.tasks import start_task
from ..agent import RealtimeAgent
from ..config import RealtimeLimits
from ..events import RealtimeError
from ..handoffs import as_realtime_handoff
from ..items import AssistantMessageItem, RealtimeItem
from ..model import RealtimeConnection
from ..state.recorded import Recorded
from .call import Batch, Call
from .record import Record
from .responses import Wish
from .tool_player import Played

if TYPE_CHECKING:
    from .session_core import SessionCore

__all__ = ["Lifecycle"]


class Lifecycle:
    """The start, the pauses and the end of a session."""

    def __init__(self, core: SessionCore) -> None:
        self._core = core
        self.closer: asyncio.Task[None] | None = None
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.end_error: BaseException | None = None
        self._draining: list[asyncio.Future[None]] = []
        self._is_lost = False
        self._began_at = 0.0
        self._over = False
        self._idle_timer: Any = None
        self._seen_activity = -1
        self._resumed: list[Call] = []
        self._waits_open: asyncio.Future[None] | None = None

    # --- start ---

    async def open(
        self,
        access: StoreAccess | None,
        session_id: str,
        busy: Busy,
        history: Sequence[RealtimeItem],
    ) -> tuple[RealtimeConnection, Recorded | None]:
        """Acquire the session, find the agent in charge, and connect."""
        found: Recorded | None = None
        agent = self._core.agent
        if access is not None:
            record = Record(self._core, access, session_id, busy)
            found = await record.open()
            self._core.record = record
            self._core.context.lease = record.lease
            self._core.context.keeps = True
            for name, value in found.values.items():
                self._core.context.session[name] = value
            self._core.context.usage = self._core.notes.noted_usage = found.usage
            self._core.notes.message_ids.update(found.message_ids)
            agent = self._agent_named(found.agent) if found.agent is not None else agent
            self._core.conversation.fill(found.items)
        if found is None or found.is_new:
            self._core.conversation.fill(history)
        self._core.current = self._core.in_force = await self._core.settings_of(
            agent, first=agent is self._core.agent
        )
        return await self._core.link.dial(), found

    def _agent_named(self, name: str) -> RealtimeAgent:
        """Return the agent of that name, among all reachable ones."""
        seen: dict[str, RealtimeAgent] = {}
        todo = [self._core.agent]
        while todo:
            agent = todo.pop()
            if agent.name in seen:
                continue
            seen[agent.name] = agent
            targets = [as_realtime_handoff(one, agent.name).agent for one in agent.handoffs]
            todo.extend(one for one in targets if isinstance(one, RealtimeAgent))
        if name not in seen:
            msg = (
                f"the session ended with the agent {name!r}, which no longer exists. Agents: "
                f"{', '.join(sorted(seen))}. Nothing was connected. Add the agent again, or pass "
                "another session_id."
            )
            raise CheckpointError(msg, agent=name)
        return seen[name]

    def opened(
        self,
        found: tuple[RealtimeConnection, Recorded | None] | None,
        error: BaseException | None,
        waits: asyncio.Future[None],
    ) -> None:
        """Handle the result of connecting."""
        if found is None or self._core.is_closing:
            if found is not None:
                self._core.child(found[0].close(), None, "closing a connection")
            if not waits.done():
                waits.set_exception(
                    error
                    or OffbookError(
                        "the realtime session was closed while it was connecting. Open another one"
                    )
                )
            return
        connection, recorded = found
        self._began_at = self._core.now()
        if self._core.record is not None:
            self._core.record.start()
        self._core.took_over(self._core.current)
        self._core.link.attach(connection)
        self._core.history_changed()
        self._core.watching.call("on_run_start", None, AgentInput())
        self._core.watching.call(
            "on_agent_start",
            self._core.current.agent.hooks,
            self._core.current.agent,
            agent_name="on_start",
        )
        if recorded is not None:
            self._resume(recorded)
        self._waits_open = waits
        limits = self.limits
        if limits.max_duration is not None:
            self._core.later(limits.max_duration, self._over_limit)
            self._core.later(limits.max_duration + 30, self.fatal_limit)
        self._core.link.replay(0)

    def _resume(self, recorded: Recorded) -> None:
        """Restore the calls that had started, and the pending approvals."""
        self._core.calls.always.update(recorded.always)
        self._core.calls.never.update(recorded.never)
        for one in recorded.calls.values():
            settings = self._core.current
            call = Call(
                one.id,
                one.name,
                one.arguments,
                one.item_id,
                settings,
                Batch(None, closed=True),
                -1,
                given=one.given,
            )
            call.alone = True
            self._core.calls.all[call.id] = call
            if one.output is not None:
                call.state, call.output, call.sent, call.wished = "done", one.output, True, True
            else:
                self._resumed.append(call)
                call.asked = one.pending
                if one.pending:
                    call.state = "approval"

    def replayed_first(self) -> None:
        """Complete the opening after the first replay."""
        waits = self._waits_open
        if waits is not None and not waits.done():
            waits.set_result(None)
        for call in self._resumed:
            if call.state == "approval":
                self._core.calls.show_approval(call)
            elif (
                call.name in call.settings.handoffs
                or self._core.config.get("tools_on_resume", "rerun") == "report"
                or call.tool is None
            ):
                self._core.calls.finish(call, Played("not completed"))
            else:
                self._core.calls.begin_again(call)
        self._resumed.clear()

    # --- pauses and limits ---

    @property
    def limits(self) -> RealtimeLimits:
        return self._core.config.get("limits", RealtimeLimits())

    def is_pause(self) -> bool:
        """Return whether no response, input or call is in progress."""
        return (
            self._core.responses.is_quiet
            and not self._core.is_speaking
            and not self._core.calls.are_waited_for
            and not self._core.handoffs.is_busy
            and self._core.link.is_ready
        )

    def settle(self) -> None:
        """Start whatever can start now. Called after each message."""
        if self._core.is_closing:
            return
        self._core.responses.pump()
        if not self.is_pause():
            return
        self._core.link.look()
        limits = self.limits
        if (
            self._over
            or (
                limits.max_responses is not None
                and self._core.responses.count >= limits.max_responses
            )
            or (
                limits.max_tokens is not None
                and self._core.context.usage.input_tokens + self._core.context.usage.output_tokens
                >= limits.max_tokens
            )
        ):
            self.fatal_limit()
        elif self._draining:
            self.finish(None)
        elif limits.idle_timeout is not None and self._seen_activity != self._core.activity:
            self._seen_activity = self._core.activity
            if self._idle_timer is not None:
                self._idle_timer.cancel()
            self._idle_timer = self._core.later(
                limits.idle_timeout, self._idle, self._core.activity
            )

    def _over_limit(self) -> None:
        self._over = True

    def _idle(self, activity: int) -> None:
        if activity == self._core.activity and self.is_pause():
            self.fatal_limit()

    def fatal_limit(self) -> None:
        """End the session, because a limit is reached."""
        from ....runtime.errors import AgentError  # noqa: PLC0415 -- rarely needed

        self.fatal(
            AgentError(
                "the realtime session has reached one of its limits, and was closed: "
                f"{self.limits}. Raise the limit, or open another session",
                agent=self._core.agent_name,
            )
        )

    # --- the end of a connection ---

    def settle_connection(self) -> bool:
        """End all pending work of a lost connection.

        Returns whether a response must be requested over the next one.
        """
        responses = self._core.responses
        active = responses.active
        asks = responses.requested is not None or any(
            one.kind == "auto" for one in responses.wishes
        )
        if active is not None:
            active.status = "interrupted"
            for item in self._core.conversation.snapshot()[-8:]:
                if isinstance(item, AssistantMessageItem) and item.status == "in_progress":
                    self._core.conversation.mark(item.item_id, status="incomplete")
                    self._core.notes.record_said(item.item_id)
                    self._core.history_changed(item.item_id)
            responses.ended(active.id)
            self._core.link_end_response(active)
            asks = asks or not self._core.calls.are_waited_for
        responses.void()
        responses.drop_wish()
        self._core.outbox.hold()
        self._core.playback.void_all()
        self._core.is_speaking = False
        return asks

    def known_unsent(self) -> set[str]:
        """Return the items of calls whose outputs follow separately."""
        return {one.item_id for one in self._core.calls.all.values() if one.state != "done"}

    def go_on(self, *, asks: bool) -> None:
        """Continue after the replay."""
        if self._waits_open is not None and not self._waits_open.done():
            self.replayed_first()
        for call in self._core.calls.unsent():
            self._core.calls.send(call)
        answers = self._core.inputs.send_held()
        if asks or answers:
            self._core.responses.wish(Wish())

    # --- the end ---

    def lost_lease(self, request: object) -> None:
        """End the session, because another process has it, or may have it.

        Nothing more is written or sent.
        """
        self._is_lost = True
        self._core.link.is_ready = False
        self._core.outbox.hold()
        why = getattr(request, "reason", None) or "another process may have taken it over"
        self.fatal(RunLost(f"this process has lost the session: {why}. Open it again to continue"))

    def fatal(self, error: BaseException) -> None:
        """End the session with an error."""
        if self._core.is_closing:
            return
        if isinstance(error, RunLost):
            self._is_lost = True
        self._core.drop_held()
        with contextlib.suppress(Exception):
            self._core.show_now(
                RealtimeError, error=error, code=getattr(error, "kind", None), fatal=True
            )
        waits = self._waits_open
        if waits is not None and not waits.done():
            waits.set_exception(error)
        self.finish(error)

    def finish(self, error: BaseException | None) -> None:
        """End the session."""
        if self.closer is None:
            self._core.is_closing = True
            self.end_error = error
            self.closer = start_task(self._close(), "the end of a session", name="realtime close")

    async def _close(self) -> None:
        limit: float = self._core.config.get("close_timeout", 5.0)
        try:
            async with Deadline(limit, self._core.clock):
                await self._close_all()
        except TimeoutError:
            loggers.realtime.warning(
                "A session did not close within %s s. Its tasks that did not end are abandoned.",
                limit,
            )
        except Exception as error:  # noqa: BLE001 -- the last step: shown like all others
            self.end_error = self.end_error or error
        finally:
            self._core.events.end(self.end_error)
            for one in self._draining:
                if not one.done():
                    one.set_result(None)
            if not self.closed.done():
                self.closed.set_result(None)
            if self._core.ref is not None:
                await self._core.ref.stop(block=False)

    async def _close_all(self) -> None:
        for timer in tuple(self._core.timers):
            timer.cancel()
        for waiting in self._core.calls.close():
            if self._core.record is not None and not self._is_lost:
                self._core.record.note(
                    {"kind": "output", "call": waiting.id, "output": "not completed"}, None
                )
        children = [one for one in self._core.children if one is not asyncio.current_task()]
        for one in children:
            one.cancel()
        await asyncio.gather(*children, return_exceptions=True)
        self._core.outbox.hold()
        self._core.outbox.wake_senders()
        try:
            await self._core.link.close()
        finally:
            if self._core.record is not None:
                try:
                    await self._core.record.close(lost=self._is_lost)
                finally:
                    self._core.show_all_held()
            await self._last_hooks()

    async def _last_hooks(self) -> None:
        hooks = self._core.context.hooks
        agent = self._core.current.agent if hasattr(self._core, "current") else None
        if agent is not None:
            self._core.watching.queue(
                "on_agent_end", agent.hooks, agent, FINISHED, agent_name="on_end"
            )
        if hooks:
            error = self.end_error if isinstance(self.end_error, Exception) else None
            status = RunStatus.FAILED if error is not None else RunStatus.COMPLETED
            values, run_id = self._core.context.session.to_dict(), self._core.context.run_id
            result = RunResult(
                status,
                error,
                usage=self._core.context.usage,
                session_values=values,
                last_agent=self._core.agent_name or "",
                run_id=run_id,
            )
            self._core.watching.queue("on_run_end", None, result)
        await self._core.watching.drain()
        with self._core.span(
            "realtime.session",
            session=self._core.context.run_id,
            responses=self._core.responses.count,
            seconds=self._core.now() - self._began_at,
        ) as opened:
            if self.end_error is not None:
                opened.fail(self.end_error)

    async def drain(self) -> None:
        """Close in the next pause. Return when the session is closed."""
        waits: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._draining.append(waits)
        if self.closer is None:
            self._core.report(self.settle)
            await waits
