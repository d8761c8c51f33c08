"""The tool calls of a session. Each gets exactly one output, in all cases.

It tracks which calls run and which wait for approval, and requests a response when they have ended.
`tool_player` runs the calls, in child tasks.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, Literal

from ....runtime.errors import AgentError, ToolError, UsageError
from ..events import (
    RealtimeToolApprovalRequired,
    RealtimeToolCancelled,
    RealtimeToolEnd,
    RealtimeToolStart,
)
from ..items import RealtimeToolCallItem
from ..model_events import RealtimeModelToolCallEvent
from ..model_inputs import RealtimeModelSendItem, RealtimeModelSendToolOutput
from .call import Batch, Call
from .responses import Response, Wish
from .tool_player import Played, play_call, wants_approval

if TYPE_CHECKING:
    from .session_core import SessionCore

__all__ = ["Calls", "send_output"]

_REJECTED: Final = "Tool execution was not approved."
_INTERRUPTED: Final = "cancelled: the user interrupted"


class Calls:
    """The calls of one session."""

    def __init__(self, core: SessionCore) -> None:
        self._core = core
        self.all: dict[str, Call] = {}
        self._batches: dict[int, Batch] = {}
        self._queue: list[Call] = []
        self._running = 0
        self.always: set[tuple[str, str]] = set()
        """The tools that were approved for the session, as (agent, tool).

        Tools of the same name but of different agents are different tools.
        """
        self.never: dict[tuple[str, str], str] = {}
        """The tools rejected for the session, as (agent, tool), with the output of their calls.
        """
        self.rounds = 0

    # --- new calls ---

    def called(self, event: RealtimeModelToolCallEvent, response: Response | None) -> Call | None:
        """Handle a call of the model. Return None if there is nothing to run."""
        core = self._core
        if not event.call_id or not event.name:
            core.error(
                ToolError(
                    "a tool call of the model must have an id and a name, got id "
                    f"{event.call_id!r} and name {event.name!r}. Nothing was run"
                ),
                code="invalid_tool_call",
            )
            return None
        known = self.all.get(event.call_id)
        if known is not None:
            if (known.name, _canonical(known.arguments)) != (
                event.name,
                _canonical(event.arguments),
            ):
                msg = (
                    f"the model has used the id {event.call_id!r} of a call of {known.name} "
                    f"again, for {event.name} with other arguments: nothing was run"
                )
                core.error(ToolError(msg), code="tool_call_id_reused", call_id=event.call_id)
            elif known.recorded:
                self.send(known)
            return None
        settings = core.in_force if response is None else response.settings
        batch = self._batch_of(response)
        item_id = event.id or core.new_item_id()
        call = Call(
            event.call_id, event.name, event.arguments, item_id, settings, batch, core.link.epoch
        )
        self.all[call.id] = call
        batch.open.add(call.id)
        if item_id not in core.conversation:
            core.put_item(_item_of(call, event.previous_item_id))
        return call

    def _batch_of(self, response: Response | None) -> Batch:
        if response is None:
            return Batch(None, closed=True)
        found = self._batches.get(id(response))
        if found is None:
            found = self._batches[id(response)] = Batch(
                response, closed=response.done or response.implied
            )
        return found

    def begin(self, call: Call) -> None:
        """Run a call as soon as it may run."""
        core = self._core
        if call.tool is None:
            known = (
                ", ".join(sorted((*call.settings.tools, *call.settings.handoffs))) or "none at all"
            )
            self.finish(
                call,
                Played(f"there is no tool named {call.name!r}. The tools that exist: {known}."),
            )
            return
        if call.name in core.config.get("background_tools", ()):
            self._be_alone(call)
        core.notes.record_call(call, lambda: self._enqueue(call))

    def begin_again(self, call: Call) -> None:
        """Rerun a call that another process had started."""
        self._queue.append(call)
        self._next()

    def _enqueue(self, call: Call) -> None:
        if call.state == "waiting" and not self._core.is_closing:
            self._queue.append(call)
            self._next()

    def _next(self) -> None:
        config = self._core.config
        most = config.get("max_parallel_tools", 16) if config.get("async_tool_calls", True) else 1
        while self._queue and self._running < most:
            self._ask(self._queue.pop(0))

    def _ask(self, call: Call) -> None:
        core = self._core
        if (refusal := self.never.get(_tool_of(call))) is not None:
            self.finish(call, Played(refusal, refusal))
            return
        self._running += 1
        if not getattr(call.tool, "needs_approval", False) or _tool_of(call) in self.always:
            self._run(call)
            return
        guarded = core.config.get("tool_execution", {}).get(
            "pre_approval_tool_input_guardrails", False
        )
        work = wants_approval(
            call.tool,
            call.settings.agent,
            core.context,
            core.system,
            call.as_call(),
            guarded=guarded,
        )
        call.task = core.child(
            work, lambda found, error: self._asked(call, found, error), f"approval of {call.name}"
        )

    def _asked(self, call: Call, found: bool | Played | None, error: BaseException | None) -> None:  # noqa: FBT001 -- the result
        if call.state != "waiting":
            return
        if isinstance(found, Played) or error is not None:
            self._running -= 1
            self._played(call, found if isinstance(found, Played) else None, error)
        elif found:
            self._running -= 1
            self._wait_for_approval(call)
        else:
            self._run(call)
        self._next()

    # --- approvals ---

    def _wait_for_approval(self, call: Call) -> None:
        core = self._core
        call.state, call.asked = "approval", True
        self._be_alone(call)
        limit = core.config.get("approval_timeout")
        if limit is not None:
            call.timer = core.later(
                limit, self.reject, call.id, False, "the call was not approved in time"
            )
        core.notes.record_pending(call)
        self.show_approval(call)

    def show_approval(self, call: Call) -> None:
        self._core.show(
            RealtimeToolApprovalRequired,
            agent=call.settings.agent,
            tool=call.tool,
            call_id=call.id,
            arguments=call.arguments,
        )

    @property
    def pending(self) -> tuple[Call, ...]:
        return tuple(one for one in self.all.values() if one.state == "approval")

    def _awaited(self, call_id: str) -> Call | None:
        call = self.all.get(call_id)
        if call is None or not call.asked:
            waiting = ", ".join(one.id for one in self.pending) or "none"
            msg = (
                f"the call {call_id!r} does not wait for an approval. Pass the id of one of "
                f"these: {waiting}."
            )
            raise UsageError(msg)
        if call.state != "approval":
            return None  # already answered: the first answer counts
        if call.timer is not None:
            call.timer.cancel()
            call.timer = None
        return call

    def approve(
        self,
        call_id: str,
        always: bool,  # noqa: FBT001 -- a message's parameter
        arguments: str | Mapping[str, object] | None,
    ) -> None:
        """Approve and run the call."""
        call = self._awaited(call_id)
        if call is None:
            return
        if arguments is not None:
            call.given = (
                arguments
                if isinstance(arguments, str)
                else json.dumps(dict(arguments), ensure_ascii=False)
            )
        if always:
            self.always.add(_tool_of(call))
        self._core.notes.record_answer(call, always=always)
        self._running += 1
        self._run(call)

    def reject(self, call_id: str, always: bool, message: str | None) -> None:  # noqa: FBT001 -- as above
        """Reject the call."""
        call = self._awaited(call_id)
        if call is None:
            return
        text = message or self._core.inputs.formatted_rejection(call, _REJECTED)
        if always:
            self.never[_tool_of(call)] = text
            self._core.notes.record_rejection(call, text)
        self.finish(call, Played(text, text))

    # --- running calls ---

    def _run(self, call: Call) -> None:
        core = self._core
        call.state = "running"
        core.show(
            RealtimeToolStart,
            agent=call.settings.agent,
            tool=call.tool,
            arguments=call.as_call().arguments,
            call_id=call.id,
        )
        core.hooks(
            "on_tool_start", call.settings.agent, call.settings.agent, call.tool, call.as_call()
        )
        if not call.alone:
            call.timer = core.later(core.config.get("tool_wait", 10.0), self._is_slow, call)
        work = play_call(
            call.tool,
            call.settings.agent,
            core.context,
            core.system,
            call.as_call(),
            core.span("tool", tool=call.name, call_id=call.id),
        )
        call.task = core.child(
            work, lambda played, error: self._ran(call, played, error), f"tool {call.name}"
        )

    def _ran(self, call: Call, played: Played | None, error: BaseException | None) -> None:
        self._running -= 1
        if call.state == "running":
            self._played(call, played, error)
        self._next()

    def _played(self, call: Call, played: Played | None, error: BaseException | None) -> None:
        core = self._core
        if played is None:
            played = Played(f"tool {call.name} failed: {type(error).__name__}", None, error)
        if played.error is not None:
            if core.config.get("on_tool_error", "report") == "raise":
                msg = (
                    f"tool {call.name} of agent {call.settings.agent.name!r} failed: {played.text}"
                )
                fatal = AgentError(msg, agent=call.settings.agent.name, message=call.as_call())
                fatal.__cause__ = played.error
                core.lifecycle.fatal(fatal)
                return
            core.error(played.error, code="tool_error", call_id=call.id)
        self.finish(call, played)

    def _is_slow(self, call: Call) -> None:
        """Stop waiting for a slow call."""
        if call.state == "running":
            self._be_alone(call)

    def _be_alone(self, call: Call) -> None:
        call.alone = True
        call.batch.open.discard(call.id)
        self._look(call.batch)

    # --- the end ---

    def finish(self, call: Call, played: Played, *, quiet: bool = False) -> None:
        """Set the output of a call."""
        core = self._core
        if call.state == "done":
            return
        was_shown = call.state == "running" or call.asked
        call.state, call.output, call.quiet = "done", played.text, quiet
        if call.timer is not None:
            call.timer.cancel()
            call.timer = None
        if was_shown:
            arguments = call.as_call().arguments
            core.show(
                RealtimeToolEnd,
                agent=call.settings.agent,
                tool=call.tool,
                arguments=arguments,
                output=played.output,
                call_id=call.id,
            )
            core.hooks(
                "on_tool_end",
                call.settings.agent,
                call.settings.agent,
                call.tool,
                core.notes.tool_message(call),
            )
        core.notes.record_output(call, lambda: self.send(call))

    def send(self, call: Call) -> None:
        """Send the output, and request a response if it was the last one that is waited for."""
        core = self._core
        call.recorded = True
        core.conversation.mark(call.item_id, status="completed", output=call.output)
        if core.is_closing or call.sent or call.queued == core.link.epoch:
            return
        core.history_changed(call.item_id)
        if not core.link.is_ready:
            return  # it is sent with the replay, or after it
        item_id = core.new_item_id()
        wish = self._wish_of(call, item_id)
        send_output(core, call, item_id, wish)

    def _wish_of(self, call: Call, item_id: str) -> Wish | None:
        batch = call.batch
        if call.wished or call.quiet:
            batch.open.discard(call.id)
            return None
        call.wished = True
        if call.alone or batch.handed_over:
            return self._tool_wish(batch, (item_id,))
        batch.open.discard(call.id)
        batch.ended.append(item_id)
        return self._batch_wish(batch)

    def _batch_wish(self, batch: Batch) -> Wish | None:
        if not batch.closed or batch.open or not batch.ended:
            return None
        items, batch.ended = tuple(batch.ended), []
        return self._tool_wish(batch, items)

    def _tool_wish(self, batch: Batch, items: tuple[str, ...]) -> Wish:
        """Return the request for a response to outputs.

        A response with calls is one round, whatever the number of its outputs.
        """
        if not batch.counted:
            batch.counted = True
            self.rounds += 1
        over = self.rounds >= self._core.config.get("max_tool_rounds", 20)
        return Wish(items=items, tool_choice="none" if over else None)

    def _look(self, batch: Batch) -> None:
        """Request a response if the batch no longer waits for an output."""
        wish = self._batch_wish(batch)
        if wish is not None:
            self._core.responses.wish(wish)

    def response_ended(self, response: Response) -> None:
        """Handle the end of a response, after which it has no more calls."""
        batch = self._batches.pop(id(response), None)
        if batch is not None:
            batch.closed = True
            self._look(batch)

    def handed_over(self, call: Call) -> None:
        """Stop waiting for the other calls of a response with a handoff."""
        call.batch.handed_over = True
        for other in tuple(call.batch.open):
            if other != call.id:
                self._be_alone(self.all[other])

    def user_spoke(self) -> None:
        """Reset the number of tool rounds."""
        self.rounds = 0

    def interrupted(self) -> None:
        """Cancel the calls that a user's interruption ends."""
        rule = self._core.config.get("tool_interrupt", "keep")
        for call in tuple(self.all.values()):
            kept = rule if isinstance(rule, str) else rule.get(call.name, "keep")
            if (
                kept == "cancel"
                and call.state in ("running", "waiting")
                and not call.alone
                and call.tool is not None
            ):
                self.cancel(call, _INTERRUPTED)

    def cancel(self, call: Call, why: str) -> None:
        core = self._core
        if call.task is not None:
            call.task.cancel()
            self._running -= 1
        if call in self._queue:
            self._queue.remove(call)
        core.show(
            RealtimeToolCancelled,
            agent=call.settings.agent,
            tool=call.tool,
            call_id=call.id,
            arguments=call.arguments,
        )
        self.finish(call, Played(why, why), quiet=True)
        self._next()

    def close(self) -> list[Call]:
        """Stop starting calls, because the session ends.

        Returns the calls that have started and have no output.
        """
        self._queue.clear()
        return [
            one
            for one in self.all.values()
            if one.state in ("running", "waiting") and one.name in one.settings.tools
        ]

    @property
    def are_waited_for(self) -> bool:
        return any(one.state in ("running", "waiting", "approval") for one in self.all.values())

    def unsent(self) -> list[Call]:
        epoch = self._core.link.epoch
        return [
            one
            for one in self.all.values()
            if one.recorded and not one.sent and one.queued != epoch
        ]


def _item_of(call: Call, previous: str | None) -> RealtimeToolCallItem:
    status: Literal["in_progress"] = "in_progress"
    return RealtimeToolCallItem(
        item_id=call.item_id,
        previous_item_id=previous,
        call_id=call.id,
        status=status,
        arguments=call.arguments,
        name=call.name,
    )


def _tool_of(call: Call) -> tuple[str, str]:
    """Return the key of an answer for all calls of a tool."""
    return call.settings.agent.name, call.name


def _canonical(arguments: str) -> object:
    try:
        return json.dumps(json.loads(arguments or "{}"), sort_keys=True)
    except ValueError:
        return arguments


def send_output(core: SessionCore, call: Call, item_id: str, wish: Wish | None) -> None:
    """Send the output, and request a response after it if `wish` is not None."""

    def sent() -> None:
        call.sent = True

    call.queued = core.link.epoch
    if call.epoch == core.link.epoch:
        starts = wish is not None and core.responses.request_now(wish)
        event_id = wish.event_id if wish is not None and starts else None
        core.outbox.put(
            RealtimeModelSendToolOutput(
                call.as_event(), call.output or "", starts, event_id=event_id, item_id=item_id
            ),
            sent,
        )
        if starts:
            return
    else:
        item = core.conversation.get(call.item_id)
        if isinstance(item, RealtimeToolCallItem):
            call.epoch = core.link.epoch
            core.outbox.put(
                RealtimeModelSendItem(item.model_copy(update={"output": call.output})), sent
            )
    if wish is not None:
        core.responses.wish(wish)
