"""The SDK's runner, with stored runs.

Without a store it behaves like the SDK's own. With one, each run is an offbook run: an agent actor
runs the SDK's loop, and each call of the loop is a step in the store.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import AbstractContextManager, aclosing, suppress
from typing import TYPE_CHECKING, Any, Final, Literal, Unpack, cast

import agents
from agents import RunResult, RunState
from agents.result import RunResultStreaming
from agents.run import (
    DEFAULT_MAX_TURNS,
    AgentRunner,
    RunOptions,
    get_default_agent_runner,
    set_default_agent_runner,
)

from ...runtime.actor.current import entered_system
from ...runtime.data.chat import Message
from ...runtime.data.run_result import RunStatus
from ...runtime.errors import CheckpointNotFound, ResumeError, UsageError
from ...runtime.option_names import refuse_unknown
from ...runtime.runner import Runner as StoredRunner
from ...runtime.system.loop_bridge import running_loop
from ...runtime.system.system import ActorSystem
from ...runtime.tasks import start_task
from ..tools.approval import Deny
from .messages import messages_of_items
from .recording import OnChange, Recording, Scope, current_scope, nested, recorded_by
from .results import error_from_store, result_from_store
from .sdk_agent import RESULT, LiveCall, SdkAgent, decisions_of, stored_input
from .seams import ORIGIN, RecordedSession

if TYPE_CHECKING:
    from agents.items import TResponseInputItem
    from agents.stream_events import StreamEvent

    from ...runtime.data.run_result import RunResult as StoredResult
    from ...runtime.run.run import Run
    from ...runtime.stores import Store

__all__ = ["OffbookRunner", "Runner", "install"]

Durability = Literal["none", "interrupt", "step"]


class OffbookRunner(AgentRunner):
    """The SDK's runner, with a store.

    `install(store=...)` calls `agents.run.set_default_agent_runner(OffbookRunner(store=...))`.
    """

    def __init__(
        self,
        *,
        store: Store | None = None,
        durability: Durability = "step",
        run_id: str | None = None,
        labels: Mapping[str, str] | None = None,
        on_change: OnChange = "error",
    ) -> None:
        if store is None and (run_id is not None or labels is not None):
            raise UsageError(
                "run_id= and labels= name a stored run, and there is no store. Pass "
                "store=SQLiteStore('runs.db')."
            )
        self._store = store if durability != "none" else None
        self._durability: Durability = durability
        self._run_id = run_id
        self._labels = labels
        self._on_change: OnChange = on_change

    async def run(self, starting_agent: agents.Agent[Any], input: Any, **kwargs: Any) -> RunResult:
        scope = current_scope()
        # called by a tool or a guardrail of a stored run, and part of that run
        if scope is not None:
            with nested(scope.inner(starting_agent.name)) as inner:
                return await super().run(starting_agent, input, **_recorded(kwargs, inner))
        if self._store is None:
            return await super().run(starting_agent, input, **kwargs)
        call = self._call(starting_agent, input, kwargs)
        try:
            outcome = await self._outcome(call)
        except BaseException:
            if call.task is not None:  # it may need to clean up
                if not call.recording.run_id:  # otherwise it is cancelled with the run
                    call.task.cancel()
                with suppress(BaseException):  # a second cancellation reaches it, too
                    await call.task
            raise
        return await self._result_of(call, outcome)

    def run_streamed(
        self, starting_agent: agents.Agent[Any], input: Any, **kwargs: Any
    ) -> RunResultStreaming:
        scope = current_scope()
        if scope is not None:
            with nested(scope.inner(starting_agent.name)) as inner:
                return super().run_streamed(starting_agent, input, **_recorded(kwargs, inner))
        if self._store is None or running_loop() is None:  # the SDK raises the error then
            return super().run_streamed(starting_agent, input, **kwargs)
        call = self._call(starting_agent, input, kwargs)
        with recorded_by(call.recording):
            result = super().run_streamed(starting_agent, input, **call.options)
        call.streamed, call.task = result, result.run_loop_task
        _tie(result, start_task(self._follow(call), "a stored run of the SDK"), call)
        return result

    # --- a stored run ---

    def _call(self, agent: agents.Agent[Any], current: Any, kwargs: Mapping[str, Any]) -> LiveCall:
        recording = Recording(asyncio.get_running_loop(), on_change=self._on_change)
        recording.continues_live = isinstance(current, RunState)
        return LiveCall(agent, current, _recorded(kwargs, Scope(recording)), recording)

    async def _outcome(self, call: LiveCall) -> StoredResult:
        """Start or resume a stored run, and wait for its end."""
        try:
            call.run = await self._begin(call)
            outcome = await call.run
        except Exception as error:
            call.recording.give_up(error)
            raise
        if (result := call.streamed or call.result) is not None:
            _mark(result, call.run.id, outcome)
        # The new interrupts of an undecided state ask the same questions as before.
        if call.asks_again and outcome.status is RunStatus.INTERRUPTED:
            vars(call.current)[ORIGIN]["interrupts"] = _asked_by(outcome)
        return outcome

    async def _begin(self, call: LiveCall) -> Run:
        """Start a stored run, or resume the run of a `RunState`."""
        definition, system = SdkAgent(call.agent, on_change=self._on_change), _system_here()
        runner = StoredRunner(
            definition, system=system, store=self._store, durability=self._durability
        )
        current, streaming = call.current, call.streamed is not None
        if isinstance(current, RunState):
            targets = await _targets(runner, current, self._run_id)
            if targets is not None:
                run_id, answers = targets
                # The answers are used up once the SDK has accepted the state.
                if call.task is None:
                    with recorded_by(call.recording):
                        loop = super().run(call.agent, current, **call.options)
                        call.task = start_task(loop, f"the SDK's loop of agent {call.agent.name!r}")
                await asyncio.wait(
                    (call.task, call.recording.asked), return_when=asyncio.FIRST_COMPLETED
                )
                if call.task.done():
                    call.task.result()
                origin = vars(current).get(ORIGIN, {"interrupts": {}})
                vars(current)[ORIGIN] = {**origin, "run": run_id, "continued": True}
                call.asks_again = not answers
                return runner.resume(run_id, answers, streaming=streaming, context=call)
        return runner.run(
            _shown(current),
            run_id=self._run_id,
            labels=self._labels,
            session_values=stored_input(current, call.options, named=self._run_id is not None),
            streaming=streaming,
            context=call,
        )

    async def _result_of(self, call: LiveCall, outcome: StoredResult) -> RunResult:
        if call.error is not None:
            raise call.error
        if call.result is None:  # the run was started before, by this process or another one
            return await _earlier(call, outcome)
        assert isinstance(call.result, RunResult)
        return call.result

    async def _follow(self, call: LiveCall) -> None:
        """Wait for the end of a streamed run.

        An error at its start is raised in the loop that waits for it.
        """
        outcome = await self._outcome(call)
        if call.result is None and call.error is None:
            assert call.run is not None
            call.recording.give_up(
                outcome.error
                or UsageError(
                    f"run {call.run.id} is {outcome.status.value} already, and is not streamed "
                    "again: Runner.run(run_id=...) returns its result.",
                    run=call.run.id,
                )
            )


_systems: dict[asyncio.AbstractEventLoop, ActorSystem] = {}


def _system_here() -> ActorSystem:
    """Return the system of the running event loop.

    It is the one that the program has entered, or one that all stored runs of the loop share.
    """
    loop = asyncio.get_running_loop()
    entered = entered_system(loop)
    if isinstance(entered, ActorSystem):
        return entered
    system = _systems.get(loop)
    if system is None:
        for known in [known for known in tuple(_systems) if known.is_closed()]:
            _systems.pop(known, None)
        system = _systems[loop] = ActorSystem("agents-sdk")
        system.bind(loop, for_one=True)
    return system


def _recorded(kwargs: Mapping[str, Any], scope: Scope) -> dict[str, Any]:
    session = kwargs.get("session")
    if session is None or isinstance(session, str):
        return dict(kwargs)
    return {**kwargs, "session": RecordedSession(session, scope)}


def _shown(current: Any) -> list[Message]:
    """Convert the input to messages of the stored run.

    They are for display, and identify the input of a repeated `run_id`.
    """
    if isinstance(current, RunState):
        return [Message.user("(goes on from a RunState)")]
    return list(messages_of_items(current)) or [Message.user("")]


def _mark(result: RunResult | RunResultStreaming, run_id: str, outcome: StoredResult) -> None:
    """Make the states of a result contain the id of their stored run."""
    to_state = result.to_state
    origin: dict[str, Any] = {
        "run": run_id,
        "interrupts": _asked_by(outcome),
        "continued": outcome.status is not RunStatus.INTERRUPTED,
    }

    def marked() -> RunState[Any, Any]:
        state = to_state()
        vars(state)[ORIGIN] = {**origin}
        return state

    result.to_state = marked  # type: ignore[method-assign]  # the SDK's state has no place for it


def _asked_by(outcome: StoredResult) -> dict[str, str]:
    """Return the ids of the interrupts that a run waits for, by the ids of their calls."""
    return {
        context.address[-1].call_id or "": context.id
        for context in outcome.interrupts
        if context.is_root_cause
    }


async def _targets(
    runner: StoredRunner, state: RunState[Any, Any], named: str | None
) -> tuple[str, dict[str, object]] | None:
    """Return the stored run that a state continues, and its answers to the open interrupts.

    Returns None if the state starts a new run.

    A state with a question answers only the interrupts of the run that it was made from. Once they
    are answered, it is refused. There is one exception: if the resumed run has failed, the state
    that it was resumed from, or JSON made from it since, may start a new run, because the SDK has
    noted in it which calls were made.
    """
    origin = vars(state).get(ORIGIN)
    waiting = {item.call_id or "": item for item in state.get_interruptions()}
    run_id: str | None = named if origin is None else origin["run"]
    if named is not None and run_id != named:
        msg = (
            f"run_id={named!r} and the RunState belong to different runs: the state is of run "
            f"{run_id!r}. Pass run_id={run_id!r}, or none."
        )
        raise UsageError(msg, run=named)
    if run_id is None or not waiting:
        return None
    try:
        info = await runner.info(run_id)
    except CheckpointNotFound:
        if origin is None:
            return None
        msg = (
            f"the RunState belongs to run {run_id!r}, which this store does not have (any more). "
            "Nothing was called. Run the agent again for a new approval."
        )
        raise ResumeError(msg, run=run_id) from None
    contexts = {context.address[-1].call_id or "": context for context in info.waiting}
    fits = info.status is RunStatus.INTERRUPTED and _asks_for(info, waiting)
    if not fits or (
        origin is not None
        and any(contexts[call_id].id != asked for call_id, asked in origin["interrupts"].items())
    ):
        if info.status is RunStatus.FAILED and origin is not None and origin.get("continued"):
            return None
        msg = (
            f"the RunState does not belong to what run {run_id!r} waits for: the run is "
            f"{info.status.value}, the state asks for {', '.join(waiting)}."
        )
        raise ResumeError(msg, run=run_id)
    decided = decisions_of(state)
    answers: dict[str, object] = {}
    for call_id, context in contexts.items():
        decision = decided.get(call_id)
        if decision is not None:
            answers[context.id] = (
                True if decision["approve"] else Deny(decision.get("message") or "")
            )
    return run_id, answers


def _asks_for(info: Any, waiting: Mapping[str, Any]) -> bool:
    """Return whether a run waits for exactly the calls of a state.

    Their ids, names and arguments must be the same.
    """
    asked = {context.address[-1].call_id: context.info for context in info.waiting}
    return asked.keys() == waiting.keys() and all(
        (request.tool_name, request.arguments)
        == (waiting[call_id].tool_name or "", waiting[call_id].arguments or "")
        for call_id, request in asked.items()
    )


async def _earlier(call: LiveCall, outcome: StoredResult) -> RunResult:
    """Return the stored result of a run that was started before."""
    if outcome.error is not None:
        raise error_from_store(outcome.error) from outcome.error
    stored = outcome.session_values.get(RESULT)
    assert call.run is not None
    if not isinstance(stored, Mapping):
        msg = (
            f"run {call.run.id} is {outcome.status.value}, and the store has no result of "
            "it, because this package did not start it with a run_id. Pass another run_id."
        )
        raise UsageError(msg, run=call.run.id)
    result = await result_from_store(call.agent, stored, call.options.get("context"))
    _mark(result, call.run.id, outcome)
    return result


def _tie(result: RunResultStreaming, follow: asyncio.Task[None], call: LiveCall) -> None:
    """Make the stream end when the stored run has ended, so that all shown events are stored."""
    stream_events = result.stream_events

    async def events() -> AsyncIterator[StreamEvent]:
        try:
            async with aclosing(
                cast("AsyncGenerator[StreamEvent, None]", stream_events())
            ) as stream:
                async for event in stream:
                    yield event
        except Exception:
            await asyncio.wait([follow])
            if call.run is not None or follow.cancelled():
                raise
        await asyncio.wait([follow])
        if (
            call.result is None
            and not follow.cancelled()
            and (error := follow.exception()) is not None
        ):
            raise error

    follow.add_done_callback(_retrieve)
    result.stream_events = events  # type: ignore[method-assign]  # the SDK's own method does not know about stores


def _retrieve(task: asyncio.Task[None]) -> None:
    if not task.cancelled():
        task.exception()  # it reached the consumer through the stream


class StoredRunOptions(RunOptions[Any], total=False):
    """The SDK's run options, and the options of a stored run."""

    store: Store | None
    durability: Durability
    run_id: str | None
    labels: Mapping[str, str] | None
    on_change: OnChange


class Runner:
    """The SDK's `Runner`, with the same signatures.

    It has five more options: `store=`, `durability=`, `run_id=`, `labels=` and `on_change=`.
    """

    @classmethod
    async def run(
        cls,
        starting_agent: agents.Agent[Any],
        input: str | list[TResponseInputItem] | RunState[Any, Any],
        **options: Unpack[StoredRunOptions],
    ) -> RunResult:
        """Run an agent.

        With a store, each step is recorded. A `run_id` makes the call idempotent.
        """
        runner, of_the_sdk = _split(options)
        return await runner.run(starting_agent, input, **of_the_sdk)

    @classmethod
    def run_sync(
        cls,
        starting_agent: agents.Agent[Any],
        input: str | list[TResponseInputItem] | RunState[Any, Any],
        **options: Unpack[StoredRunOptions],
    ) -> RunResult:
        """Run an agent where no event loop is running."""
        runner, of_the_sdk = _split(options)
        return runner.run_sync(starting_agent, input, **of_the_sdk)

    @classmethod
    def run_streamed(
        cls,
        starting_agent: agents.Agent[Any],
        input: str | list[TResponseInputItem] | RunState[Any, Any],
        **options: Unpack[StoredRunOptions],
    ) -> RunResultStreaming:
        """Run an agent, and return a stream of the SDK's events."""
        runner, of_the_sdk = _split(options)
        return runner.run_streamed(starting_agent, input, **of_the_sdk)


_OURS: Final = frozenset(("store", "durability", "run_id", "labels", "on_change"))
_KNOWN: Final = tuple(sorted(_OURS | RunOptions.__annotations__.keys()))


def _split(options: Mapping[str, Any]) -> tuple[AgentRunner, dict[str, Any]]:
    """Return the runner of one run, and the options to pass on.

    Unknown options are refused here, because the SDK ignores them.
    """
    refuse_unknown("Runner.run", options, _KNOWN)
    ours = {name: value for name, value in options.items() if name in _OURS and value is not None}
    of_the_sdk = {
        "max_turns": DEFAULT_MAX_TURNS,
        **{name: value for name, value in options.items() if name not in _OURS},
    }
    default = get_default_agent_runner()  # possibly replaced by `install`
    if not ours and isinstance(default, OffbookRunner):
        return default, of_the_sdk
    return OffbookRunner(**ours), of_the_sdk


def install(
    *, store: Store | None = None, durability: Durability = "step", on_change: OnChange = "error"
) -> Installed:
    """Store every run of the SDK in this process.

    As a context manager, it does so until the end of the block.
    """
    before = get_default_agent_runner()
    set_default_agent_runner(OffbookRunner(store=store, durability=durability, on_change=on_change))
    return Installed(before)


class Installed(AbstractContextManager["Installed"]):
    """The result of `install`, which can be undone."""

    def __init__(self, before: AgentRunner) -> None:
        self._before = before

    def uninstall(self) -> None:
        """Restore the previous default runner."""
        set_default_agent_runner(self._before)

    def __exit__(self, *_: object) -> None:
        self.uninstall()
