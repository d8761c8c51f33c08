"""Hands a session off to another agent.

The order of a handoff is: callback, target, settings, switch, event, hooks, update, output. A
failed handoff is reported or reverted. Handoffs run one at a time, so only one agent is in charge.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ....runtime.errors import (
    AgentError,
    HandoffError,
    ModelBehaviorError,
    ModelError,
    UsageError,
    text_of,
)
from ....runtime.maybe_await import maybe_await
from ...handoffs.handoff import Handoff
from ..agent import RealtimeAgent
from ..events import RealtimeHandoffEvent
from ..model_inputs import RealtimeModelSendSessionUpdate
from ..state.settings import AgentSettings, difference
from .call import Call
from .tool_player import Played

if TYPE_CHECKING:
    from .session_core import SessionCore

__all__ = ["Handoffs"]

_SECOND: Final = "Multiple handoffs detected, ignoring this one."


@dataclass(eq=False)
class _Change:
    """One change of the agent, by a call or by the program."""

    settings: AgentSettings
    before: AgentSettings
    call: Call | None = None
    waits: asyncio.Future[None] | None = None


class Handoffs:
    """The handoffs of one session."""

    def __init__(self, core: SessionCore) -> None:
        self._core = core
        self._queue: list[Any] = []
        self._busy = False
        self._change: _Change | None = None  # whose update is in progress
        self._count = 0

    @property
    def is_pending(self) -> bool:
        """Whether the settings of the current agent are not in force yet."""
        return self._change is not None

    @property
    def is_busy(self) -> bool:
        return self._busy or bool(self._queue)

    def called(self, call: Call) -> None:
        """Handle a handoff by the model."""
        response = call.batch.response
        if response is not None:
            if response.handoff_call is not None:
                self._core.calls.finish(
                    call, Played(self._core.config.get("multiple_handoffs_message", _SECOND))
                )
                return
            response.handoff_call = call.id
        self._core.notes.record_call(call, lambda: self._enqueue(call))

    def update(self, agent: RealtimeAgent, waits: asyncio.Future[None]) -> None:
        """Handle a change of the agent by the program."""
        self._enqueue((agent, waits))

    def _enqueue(self, wanted: Any) -> None:
        self._queue.append(wanted)
        self._next()

    def _next(self) -> None:
        core = self._core
        if self._busy or not self._queue or core.is_closing:
            return
        wanted = self._queue.pop(0)
        self._busy = True
        if isinstance(wanted, Call):
            handoff = wanted.settings.handoffs[wanted.name]
            core.child(
                self._prepare(wanted, handoff),
                lambda found, error: self._prepared(wanted, found, error),
                f"handoff {wanted.name}",
            )
        else:
            agent, waits = wanted
            core.child(
                core.settings_of(agent),
                lambda found, error: self._computed(waits, found, error),
                f"settings of {agent.name}",
            )

    # --- callback, target and settings ---

    async def _prepare(self, call: Call, handoff: Handoff) -> AgentSettings:
        source = call.settings.agent
        with self._core.span(
            "handoff", from_agent=source.name, to_agent=handoff.agent_name
        ) as opened:
            try:
                target = await self._target(call, handoff)
                opened.set(to_agent=target.name)
                return await self._core.settings_of(target)
            except Exception as error:
                opened.fail(error)
                raise

    async def _target(self, call: Call, handoff: Handoff) -> RealtimeAgent:
        core, source = self._core, call.settings.agent
        self._count += 1
        if self._count > core.config.get("max_handoffs", 100):
            msg = (
                f"the session has handed off {self._count - 1} times, which is its limit. If "
                "that is intended, raise config['max_handoffs']"
            )
            raise HandoffError(msg, agent=source.name)
        if not await handoff.enabled(core.context, source):
            msg = (
                f"the handoff {call.name!r} does not exist or is not enabled now. Call another tool"
            )
            raise ModelBehaviorError(msg, agent=source.name)
        target: Any = await maybe_await(handoff.on_invoke_handoff(core.context, call.arguments))
        if not isinstance(target, RealtimeAgent):
            msg = (
                f"Handoff {call.name} returned invalid result: {type(target)}. Its target must "
                "be a RealtimeAgent."
            )
            raise UsageError(msg, agent=source.name)
        return target

    def _prepared(
        self, call: Call, settings: AgentSettings | None, error: BaseException | None
    ) -> None:
        core = self._core
        if settings is None:
            self._failed(call, error or HandoffError("the handoff was cancelled"))
            return
        self._switch(_Change(settings, core.current, call))

    def _failed(self, call: Call, error: BaseException) -> None:
        core = self._core
        self._busy = False
        if core.config.get("on_tool_error", "report") == "raise":
            msg = f"the handoff {call.name} failed: {text_of(error)}"
            fatal = AgentError(msg, agent=call.settings.agent.name, message=call.as_call())
            fatal.__cause__ = error
            core.lifecycle.fatal(fatal)
            return
        core.error(error, code="handoff_failed", call_id=call.id)
        why = " ".join(text_of(error).split())
        core.calls.finish(
            call,
            Played(
                why
                if isinstance(error, ModelBehaviorError) and "no tool named" in why
                else f"the handoff failed: {why}"
            ),
        )
        self._next()

    def _computed(
        self,
        waits: asyncio.Future[None],
        settings: AgentSettings | None,
        error: BaseException | None,
    ) -> None:
        if settings is None:
            self._busy = False
            _set_error(waits, error or UsageError("the change of the agent was cancelled"))
            self._next()
            return
        self._switch(_Change(settings, self._core.current, None, waits))

    # --- switch, event and update ---

    def _switch(self, change: _Change) -> None:
        core = self._core
        source, target = change.before.agent, change.settings.agent
        core.current = change.settings
        self._change = change
        if change.call is not None:
            core.show(RealtimeHandoffEvent, from_agent=source, to_agent=target)
            core.handoff_hooks(source, target)
            core.calls.handed_over(change.call)
        core.notes.record_agent(target.name)
        core.after_write(lambda: self._send_update(change))

    def _send_update(self, change: _Change) -> None:
        core = self._core
        if self._change is not change or not core.link.is_ready:
            return  # the next connection is made with the settings of the new agent
        changed = core.sendable(difference(core.in_force.flat, change.settings.flat))
        if not changed:
            self._in_force(change, core.link.epoch, None)
            return
        epoch = core.link.epoch
        update = RealtimeModelSendSessionUpdate(changed)  # type: ignore[arg-type]  # flat settings have this type
        core.child(
            core.link.send_update(update),
            lambda _, error: self._in_force(change, epoch, error),
            "session update",
        )

    def _in_force(self, change: _Change, epoch: int, error: BaseException | None) -> None:
        core = self._core
        if self._change is not change or epoch != core.link.epoch:
            return
        if error is not None:
            if isinstance(error, ModelError) and error.kind == "connection":
                # The reader reports the end of the connection, and the next one is made for the new
                # agent.
                return
            self._revert(change, error)
            return
        self._arrived(change)

    def connected(self, dialled: AgentSettings) -> None:
        """Handle a new connection with these settings.

        They are those of the current agent, or of the previous one if the agent was switched while
        the connection was made.
        """
        change = self._change
        self._core.took_over(dialled)
        if change is not None and change.settings is dialled:
            self._arrived(change)
        elif change is not None:
            self._send_update(change)

    def _arrived(self, change: _Change) -> None:
        core = self._core
        self._change = None
        core.took_over(change.settings)
        if change.call is not None:
            core.calls.finish(
                change.call,
                Played(json.dumps({"assistant": change.settings.agent.name}, ensure_ascii=False)),
            )
        elif change.waits is not None and not change.waits.done():
            change.waits.set_result(None)
        self._busy = False
        self._next()

    def _revert(self, change: _Change, error: BaseException) -> None:
        core = self._core
        self._change = None
        core.current = change.before
        core.notes.record_agent(change.before.agent.name)
        self._busy = False
        if change.call is None:
            assert change.waits is not None
            _set_error(change.waits, error)
        else:
            core.error(error, code="update_refused", call_id=change.call.id)
            core.show(
                RealtimeHandoffEvent,
                from_agent=change.settings.agent,
                to_agent=change.before.agent,
                reverted=True,
            )
            core.calls.finish(
                change.call, Played(f"the handoff failed: {' '.join(text_of(error).split())}")
            )
        self._next()


def _set_error(waits: asyncio.Future[None], error: BaseException) -> None:
    if not waits.done():
        waits.set_exception(error)
