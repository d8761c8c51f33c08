"""The record of one run of the SDK: each call with an effect outside the process is a step.

A step's key identifies the call in a second attempt: the tool calls around it, the agent, its turn,
the id of the call. Its order is not part of the key, because concurrent calls end in any order. Its
value contains a digest of the request, so a second attempt with a different request is detected.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

from ...runtime.data.chat import Message
from ...runtime.data.events import AgentEvent
from ...runtime.errors import CheckpointError
from ...runtime.log import loggers
from ...runtime.system.loop_bridge import running_loop
from .plain import digest_of

if TYPE_CHECKING:
    from ...runtime.agent.agent_runtime import AgentRuntime

__all__ = [
    "OnChange",
    "Recording",
    "ReplayMismatch",
    "Scope",
    "current_scope",
    "idempotency_key",
    "nested",
    "recorded_by",
]

T = TypeVar("T")
OnChange: TypeAlias = Literal["error", "rerun_from_here"]


class ReplayMismatch(CheckpointError):
    """A run that continues makes a different request than the recorded one.

    Its definition has changed, or it is not deterministic.
    """

    def __init__(self, run_id: str, step: str, recorded: str, asked: str) -> None:
        super().__init__(
            f"run {run_id}: step {step!r} asks for something else than was recorded "
            f"(recorded digest {recorded}, now {asked}). Instructions, tools or "
            "input have changed, or a hook or callback does not return the same value twice. "
            "Nothing was called. Restore the definition and resume the run, "
            "or resume it with data='rerun_from_here' (or on_change='rerun_from_here'), "
            "which makes this step and all that follow it again.",
            run=run_id,
        )
        self.step, self.recorded, self.asked = step, recorded, asked


@dataclass(frozen=True, slots=True)
class Scope:
    """The place of the current code in a recorded run: the tool calls around it."""

    recording: Recording
    prefix: str = ""
    key: str = ""
    """The key of the running tool call within its run, without ids from a provider.

    It is empty outside of tools.
    """
    place: str = ""
    """The prefix, with these keys instead of the ids of calls."""

    def inner(self, agent: str) -> Scope:
        """Return the scope of a run that a tool or a guardrail starts.

        Its steps are recorded, but not shown as the outer run's.
        """
        return Scope(self.recording, f"{self.prefix}{agent}:", self.key, f"{self.place}{agent}:")


_scope: ContextVar[Scope | None] = ContextVar("offbook_agents_sdk_scope", default=None)


def current_scope() -> Scope | None:
    """Return the recorded run of the current code, or None.

    It is None outside of a recorded run, and in a thread of a tool, whose call is one step.
    """
    scope = _scope.get()
    if scope is None or scope.recording.loop is not running_loop():
        return None
    return scope


@contextmanager
def nested(scope: Scope) -> Iterator[Scope]:
    """Make the current code belong to that place in a recorded run, within the block."""
    token = _scope.set(scope)
    try:
        yield scope
    finally:
        _scope.reset(token)


@contextmanager
def recorded_by(recording: Recording) -> Iterator[None]:
    """Record the calls of the current code there, within the block."""
    with nested(Scope(recording)):
        yield


def idempotency_key() -> str | None:
    """Return the key of the running tool call, or None outside of a stored run's tools.

    The key is the same whenever the call is made again after a crash.
    """
    scope = _scope.get()
    return None if scope is None or not scope.key else f"{scope.recording.run_id}/{scope.key}"


class Recording:
    """The steps of one stored run.

    It is bound to the run once that has started. Until then, calls to be recorded wait.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, *, on_change: OnChange = "error") -> None:
        self.loop = loop
        self.on_change = on_change
        self.run_id = ""
        self.replaying = False
        """Whether the last step was taken from the record."""
        self.continues_live = False
        """Whether the SDK continues from its own state, instead of starting over."""
        self.recovered = False
        """Whether the run was started in another process, or before an interrupt."""
        self.failure: BaseException | None = None
        """The reason nothing can be recorded any longer. It takes precedence over later errors."""
        self.edited: dict[str, str] = {}
        """Arguments that a person approved instead of the model's, by the id of the call."""
        self.models: dict[tuple[int, str, str], Any] = {}
        self.asked: asyncio.Future[None] = loop.create_future()
        """Done once the SDK's loop wants to record its first step."""
        self._runtime: asyncio.Future[AgentRuntime] = loop.create_future()
        self._turns: dict[str, set[int]] = {}
        self._calls: Counter[str] = Counter()
        self._replies = 0
        self._results: set[str] = set()
        self._open_calls: dict[str, str] = {}
        self._last_agent = ""

    # --- the stored run ---

    def bind(self, runtime: AgentRuntime) -> None:
        """Bind the recording to a stored run that has started, and read the recorded steps."""
        self.run_id = runtime.run.run_id
        messages = runtime.invocation.messages
        self._replies = sum(message.role == "assistant" for message in messages)
        self._results = {
            message.tool_call_id or "" for message in messages if message.role == "tool"
        }
        if not self._runtime.done():
            self._runtime.set_result(runtime)

    def give_up(self, error: BaseException) -> None:
        """Fail all pending and later calls. The stored run did not start, or is over."""
        self.failure = self.failure or error
        if not self._runtime.done():
            self._runtime.set_exception(error)
            self._runtime.exception()  # marked as retrieved: it may not be requested

    async def runtime(self) -> AgentRuntime:
        """Return the stored run's access to the agent. Wait until the run has started."""
        if self.failure is not None:
            raise self.failure
        if not self.asked.done():
            self.asked.set_result(None)
        return await asyncio.shield(self._runtime)

    # --- steps ---

    def find(self, runtime: AgentRuntime, key: str, digest: str | None) -> Any:
        """Return the recorded value of a step, or None.

        Raises `ReplayMismatch` if the recorded request was different.
        """
        step = (runtime.invocation.steps or {}).get(key)
        if step is not None and digest is not None and step["digest"] != digest:
            if self.on_change == "error":
                self.failure = ReplayMismatch(self.run_id, key, step["digest"], digest)
                raise self.failure
            loggers.run.warning(
                "Run %s asks for something else at step %r than was recorded: it is made "
                "again, and so is all that follows.",
                self.run_id,
                key,
            )
            runtime.invocation.steps = {}
            self._replies, self._results = 0, set()
            step = None
        self.replaying = step is not None
        return None if step is None else step["value"]

    async def note(
        self,
        runtime: AgentRuntime,
        key: str,
        digest: str | None,
        value: object,
        *,
        is_shown: bool = False,
    ) -> None:
        """Record a step that was made.

        With `is_shown`, an event that shows it is emitted next, and both are written in one commit.
        """

        async def made() -> dict[str, object]:
            return {"digest": digest, "value": value}

        await runtime.step(key, made, with_next_event=is_shown)

    async def once(
        self,
        key: str,
        digest: str | None,
        make: Callable[[], Awaitable[T]],
        to_plain: Callable[[T], Any] = lambda value: value,
        from_plain: Callable[[Any], T] = lambda plain: plain,
        *,
        is_shown: bool = False,
    ) -> T:
        """Return the result of `make`, which is called once.

        Later attempts take it from the record.

        `is_shown` is as for `note`.
        """
        runtime = await self.runtime()
        plain = self.find(runtime, key, digest)
        if plain is not None:
            return from_plain(plain)
        await runtime.make_sure()
        value = await make()
        await self.note(runtime, key, digest, to_plain(value), is_shown=is_shown)
        return value

    # --- keys ---

    async def take_turn(self, scope: Scope, agent: str) -> str:
        """Return the key of an agent's next model call."""
        await self.runtime()
        counter = f"{scope.prefix}{agent}"
        if counter not in self._turns:
            self._turns[counter] = self._recorded_turns(counter)
        taken = self._turns[counter]
        index = next(index for index in range(len(taken) + 1) if index not in taken)
        taken.add(index)
        return f"{counter}#{index}"

    def give_back(self, key: str) -> None:
        """Free the key of a failed call, which is not recorded. The agent's next call takes it."""
        counter, _, index = key.rpartition("#")
        self._turns[counter].discard(int(index))

    def _recorded_turns(self, counter: str) -> set[int]:
        """Return the recorded turns of an agent, if the SDK continues from its own state."""
        if not self.continues_live:
            return set()
        steps = self._runtime.result().invocation.steps or {}
        start = f"{counter}#"
        return {
            int(rest)
            for key in steps
            if key.startswith(start) and (rest := key[len(start) :]).isdigit()
        }

    async def call_key(self, scope: Scope, agent: str, call_id: str) -> str:
        """Return the key of a tool call in an agent's last turn."""
        await self.runtime()
        counter = f"{scope.prefix}{agent}"
        turns = self._turns.get(counter) or self._recorded_turns(counter)
        return self.next_key(f"{counter}#{max(turns, default=0)}/{call_id}")

    def name_of(self, scope: Scope, agent: str, call_id: str, key: str, arguments: object) -> str:
        """Return a name that identifies a call within its run.

        It contains no id from a provider, so a run that has lost its last steps computes the same
        name.
        """
        start = f"{scope.prefix}{agent}#"
        turn, _, rest = key.removeprefix(start).partition("/")
        reply = (self._runtime.result().invocation.steps or {}).get(f"{start}{turn}")
        value = None if reply is None else reply["value"]
        calls = list(_call_ids(value[-1:] if isinstance(value, list) else value))
        place = calls.index(call_id) if call_id in calls else call_id
        after = rest.removeprefix(call_id)
        return f"{scope.place}{agent}#{turn}/{place}:{digest_of(arguments)}{after}"

    def next_key(self, name: str) -> str:
        """Return a key for an operation that may repeat, numbered from the second time on.

        If the SDK continues from its own state, recorded keys are skipped, because the state
        includes them.
        """
        self._calls[name] += 1
        if self.continues_live:
            steps = self._runtime.result().invocation.steps or {}
            while self._key(name, self._calls[name]) in steps:
                self._calls[name] += 1
        return self._key(name, self._calls[name])

    @staticmethod
    def _key(name: str, count: int) -> str:
        return name if count == 1 else f"{name}~{count}"

    # --- decisions ---

    def decision(self, runtime: AgentRuntime, name: str) -> dict[str, Any] | None:
        """Return the recorded decision about a waiting call, or None.

        Each decision is returned once.
        """
        key = self._key(name, self._calls[name] + 1)
        step = (runtime.invocation.steps or {}).get(key)
        if step is None:
            return None
        self._calls[name] += 1
        decision: dict[str, Any] = step["value"]
        return decision

    async def note_decision(
        self, runtime: AgentRuntime, name: str, decision: dict[str, Any], *, last: bool = False
    ) -> None:
        """Record a decision.

        With `last`, it is numbered after the recorded ones, which the SDK's own state
        includes already.
        """
        steps = runtime.invocation.steps or {}
        while last and self._key(name, self._calls[name] + 1) in steps:
            self._calls[name] += 1
        self._calls[name] += 1
        await self.note(runtime, self._key(name, self._calls[name]), None, decision)

    # --- events ---

    def will_show(self, scope: Scope, call_id: str | None = None) -> bool:
        """Return whether the next reply, or the result of that call, will be an event.

        It will not if it was shown before, or if it belongs to a run inside a tool.
        """
        return not scope.prefix and (
            not self._replies if call_id is None else call_id not in self._results
        )

    async def show_reply(self, agent: str, message: Message) -> None:
        """Have the stored run show a reply, unless it was shown before."""
        runtime = await self.runtime()
        await self._show_handoff(runtime, agent)
        self._open_calls = {call.id: call.name for call in message.tool_calls}
        self._last_agent = agent
        if self._replies:
            self._replies -= 1
            return
        await runtime.emit(
            AgentEvent.of(
                message, custom_output=None if agent == runtime.agent_name else {"agent": agent}
            )
        )

    async def show_result(self, message: Message) -> None:
        """Have the stored run show a tool's result, unless it was shown before."""
        self._open_calls.pop(message.tool_call_id or "", None)
        if message.tool_call_id not in self._results:
            await (await self.runtime()).emit(AgentEvent.of(message))

    async def _show_handoff(self, runtime: AgentRuntime, agent: str) -> None:
        """If another agent replies, show the result of the call that handed off to it."""
        if not self._last_agent or agent == self._last_agent or len(self._open_calls) != 1:
            return
        ((call_id, name),) = self._open_calls.items()
        if call_id not in self._results:
            await runtime.emit(
                AgentEvent.of(
                    Message.tool(f'{{"assistant": "{agent}"}}', call_id=call_id, name=name)
                )
            )


def _call_ids(plain: object) -> Iterator[str]:
    """Yield the ids of the calls in a recorded reply, in order."""
    if isinstance(plain, dict):
        if isinstance(found := plain.get("call_id"), str):
            yield found
        plain = list(plain.values())
    for part in plain if isinstance(plain, list) else ():
        yield from _call_ids(part)
