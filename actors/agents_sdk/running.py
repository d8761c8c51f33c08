"""A run of the SDK as one of the runtime's.

Owns: how a run is made of what a program gives, begun, waited for and cancelled; the store that runs are kept in; and the actor system that the runs of one
event loop share. It must never play a turn.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ...runtime.runner import Runner as CoreRunner
from .exceptions import UserError
from .lifecycle import AgentHooksBase, RunHooksBase
from .play.ending import schema_of
from .play.live import LiveRun, StreamOutput
from .play.opening import trace_of
from .play.restoring import KEY, kept_input
from .play.sessions import check_session
from .result import RunResult, RunResultStreaming
from .run_config import DEFAULT_MAX_TURNS, as_run_config
from .run_context import RunContextWrapper
from .run_state import RunState

if TYPE_CHECKING:
    from ...runtime.run.run import Run
    from ...runtime.stores import Store

__all__ = ["Given", "begun", "finished", "result_of", "set_default_store", "streamed_result"]

_NO_LIMIT: Final = 1_000_000_000
"""A run of the SDK is limited by its turns, not by its handoffs."""
_OPTIONS: Final = frozenset(
    {
        "context",
        "max_turns",
        "hooks",
        "run_config",
        "error_handlers",
        "previous_response_id",
        "auto_previous_response_id",
        "conversation_id",
        "session",
        "store",
        "durability",
        "run_id",
        "session_values",
    }
)


class _DefaultStore:
    def __init__(self) -> None:
        self.store: Any = None
        self.durability = "step"


_default = _DefaultStore()


def set_default_store(store: Store | None, *, durability: str = "step") -> None:
    """Keep all runs of this process in that store that are given none; None for none of them."""
    _default.store, _default.durability = store, durability


@dataclass
class Given:
    """What a program has given for a run."""

    agent: Any
    input: Any
    options: Mapping[str, Any]

    def __post_init__(self) -> None:
        if not self.options.keys() <= _OPTIONS:
            unknown = ", ".join(sorted(set(self.options) - _OPTIONS))
            msg = f"Runner.run got unknown options: {unknown}. docs/from-agents-sdk.md has the list of what is missing."
            raise TypeError(msg)


def begun(given: Given) -> LiveRun:
    """The run, checked and ready to be started."""
    options = given.options
    hooks = options.get("hooks")
    _check_hooks(hooks)
    config = as_run_config(options.get("run_config"))
    config.check()
    context, asked = options.get("context"), given.input
    ids = (options.get("conversation_id"), options.get("previous_response_id"), bool(options.get("auto_previous_response_id", False)))
    source: RunState[Any, Any] | None = asked if isinstance(asked, RunState) else None
    if source is not None:
        source.conversation_id = ids[0] or source.conversation_id
        source.previous_response_id = ids[1] or source.previous_response_id
        source.auto_previous_response_id = ids[2] or source.auto_previous_response_id
        if context is not None and context is not source.context:
            source.context.context = context.context if isinstance(context, RunContextWrapper) else context
        if config.reasoning_item_id_policy is not None:
            source.reasoning_policy = config.reasoning_item_id_policy
        state = source.forked()
    else:
        wrapper = context if isinstance(context, RunContextWrapper) else RunContextWrapper(context)
        state = RunState(wrapper, _checked_input(asked), given.agent, options.get("max_turns", DEFAULT_MAX_TURNS))
        state.conversation_id, state.previous_response_id, state.auto_previous_response_id = ids
        state.reasoning_policy = config.reasoning_item_id_policy
    session = options.get("session")
    check_session(
        session,
        conversation_id=state.conversation_id,
        previous_response_id=state.previous_response_id,
        auto=state.auto_previous_response_id,
    )
    live = LiveRun(state, config)
    live.source = source
    live.is_resumed = source is not None
    live.start_hooks = source is None or not source.interruptions
    live.hooks, live.session, live.error_handlers = hooks, session, options.get("error_handlers")
    return live


def _checked_input(asked: Any) -> Any:
    if isinstance(asked, str):
        return asked
    if not isinstance(asked, list):
        msg = f"Runner.run input must be a string, a list of input items, or a RunState, got {type(asked).__name__}"
        raise UserError(msg)
    return list(asked)


def _check_hooks(hooks: Any) -> None:
    if hooks is None or isinstance(hooks, RunHooksBase):
        return
    if isinstance(hooks, AgentHooksBase):
        msg = "Run hooks must be instances of RunHooks. Received an AgentHooks instance. Set AgentHooks on the agent: Agent(..., hooks=...)."
        raise TypeError(msg)
    msg = f"Run hooks must be instances of RunHooks. Received {type(hooks).__name__}."
    raise TypeError(msg)


def _runner_of(agent: Any) -> CoreRunner:
    """The runtime's runner of an agent whose runs are not kept. It is made once: what may change of an agent, its runs look up themselves."""
    kept: CoreRunner | None = agent.__dict__.get("kept_runner")
    if kept is None or kept.agent is not agent or agent.__dict__["kept_name"] != agent.name:
        kept = agent.__dict__["kept_runner"] = CoreRunner(agent, durability="none", max_transfers=_NO_LIMIT)
        agent.__dict__["kept_name"] = agent.name
    return kept


def _started(given: Given, live: LiveRun) -> Run:
    options, state = given.options, live.state
    store = options.get("store", _default.store)
    durability: Any = options.get("durability", _default.durability) if store is not None else "none"
    agent = state.current_agent
    runner = _runner_of(agent) if store is None else CoreRunner(agent, store=store, durability=durability, max_transfers=_NO_LIMIT)
    named: dict[str, Any] = {"options": live, "context": state.context.context}
    values = dict(options.get("session_values") or {})
    messages: Any = ""
    if store is not None:
        from .items import ItemHelpers  # noqa: PLC0415 -- for runs that are kept
        from .items.messages import messages_of_items  # noqa: PLC0415 -- as above

        values[KEY] = kept_input(state)
        messages = list(messages_of_items(ItemHelpers.input_to_new_input_list(state.original_input)))
        named["run_id"] = options.get("run_id")
    elif options.get("run_id") is not None:
        msg = "Runner.run(run_id=...) needs a store: give store=, or set one with set_default_store(...)."
        raise UserError(msg)
    if values:
        named["session_values"] = values
    return runner.run(messages, **named)


async def finished(given: Given, live: LiveRun) -> Any:
    """Run to the end. Returns understudy's result. Raises what the run has failed with. If this is cancelled, it waits until the run has ended."""
    run = _started(given, live)
    try:
        outcome = await run
    except asyncio.CancelledError:
        await _ended(run)
        raise
    if live.error is not None:
        raise live.error
    outcome.raise_for_error()
    return outcome


async def _ended(run: Run) -> None:
    """Wait until nothing of the run is left, however often this is cancelled meanwhile."""
    run.cancel()
    task = asyncio.ensure_future(run.wait_ended())
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError:
            continue


def result_of(live: LiveRun, outcome: Any) -> RunResult:
    """The result of a run that has ended."""
    state = live.state
    final_output = live.final_output
    if not live.begun and outcome is not None:  # another process has played it
        final_output = outcome.output if outcome.output is not None else outcome.text
    result = RunResult(
        state.original_input,
        list(state.session_items),
        list(state.model_responses),
        final_output,
        list(state.input_guardrail_results),
        list(state.output_guardrail_results),
        list(state.tool_input_results),
        list(state.tool_output_results),
        state.context,
        state.current_agent,
        state.max_turns,
        list(state.interruptions),
    )
    result.state, result.outcome = state, outcome
    return result


# --- streaming ---


class _Shown(StreamOutput):
    """What a consumer sees of a run."""

    def __init__(self, result: RunResultStreaming) -> None:
        self._result = result

    def put(self, event: Any) -> None:
        self._result.feed.put(event)

    def sync(self, run: LiveRun) -> None:
        result, state = self._result, run.state
        result.input = state.original_input
        result.new_items = list(state.session_items)
        result.raw_responses = list(state.model_responses)
        result.input_guardrail_results = list(state.input_guardrail_results)
        result.output_guardrail_results = list(state.output_guardrail_results)
        result.tool_input_guardrail_results = list(state.tool_input_results)
        result.tool_output_guardrail_results = list(state.tool_output_results)
        result.current_turn = state.current_turn
        result.handled_max_turns = run.handled_max_turns
        result.interruptions = list(state.interruptions)
        if run.final_output is not None:
            result.final_output = run.final_output
        if result.last_agent is not state.current_agent:
            result.note_agent(state.current_agent)

    def fail(self, error: BaseException) -> None:
        self._result.early_error = error
        self._result.feed.wake()

    def is_stopping(self) -> bool:
        return self._result.cancel_mode != "none"

    async def turn_seen(self) -> bool:
        await self._result.feed.quiet()
        return self._result.cancel_mode == "after_turn"


def streamed_result(given: Given) -> RunResultStreaming:
    """A run that is looked at while it goes on. It has begun."""
    live = begun(given)
    state = live.state
    live.trace = trace_of(live)
    if live.trace is not None:
        state.set_trace(live.trace)
    result = RunResultStreaming(
        state.original_input,
        list(state.session_items),
        list(state.model_responses),
        None,
        list(state.input_guardrail_results),
        list(state.output_guardrail_results),
        list(state.tool_input_results),
        list(state.tool_output_results),
        state.context,
        state.current_agent,
        state.current_turn,
        state.max_turns,
        schema_of(state.current_agent),
        live.trace,
    )
    result.state = state
    live.output = _Shown(result)
    result.run_loop_task = asyncio.get_running_loop().create_task(_stream(given, live, result))
    return result


async def _stream(given: Given, live: LiveRun, result: RunResultStreaming) -> None:
    try:
        result.outcome = await finished(given, live)
    finally:
        result.is_complete = True
        result.feed.wake()
        # A consumer finds this task ended only when it has returned.
        asyncio.get_running_loop().call_soon(result.feed.wake)
