"""An agent of the SDK as an offbook definition.

The SDK's loop runs inside an agent actor, and its steps are recorded.
"""

from __future__ import annotations

import asyncio
import contextvars
import json
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeAlias, Unpack

import agents
from agents import RunConfig, RunHooks, RunResult, RunState, _debug
from agents.result import RunResultStreaming
from agents.run import DEFAULT_MAX_TURNS, AgentRunner

from ...runtime.agent.context import AgentContext, runtime_of
from ...runtime.data.agent_input import AgentInput
from ...runtime.data.events import AgentEvent, Interrupted
from ...runtime.data.interrupt import AddressStep
from ...runtime.errors import CheckpointError, UsageError, keep_from_logs
from ...runtime.tasks import start_task
from ..agent import Agent, AgentOptions
from ..tools.approval import ApprovalRequest, Approve, Deny
from .hooks import OnceHooks
from .messages import items_of_messages
from .recording import OnChange, Recording, ReplayMismatch, Scope, recorded_by
from .results import stored_form_of
from .seams import DECISIONS, RecordedSession, session_id_of

if TYPE_CHECKING:
    from agents import Session

    from ...runtime.agent.agent_runtime import AgentRuntime
    from ...runtime.run.run import Run

__all__ = ["RESULT", "LiveCall", "SdkAgent", "decisions_of", "stored_input"]

INPUT: Final = "offbook.agents_sdk.input"
RESULT: Final = "offbook.agents_sdk.result"
RERUN: Final = "rerun_from_here"
_NOT_LOGGED: Final = (
    "not logged, because it may contain data (OPENAI_AGENTS_DONT_LOG_MODEL_DATA=0 with "
    "OPENAI_AGENTS_DONT_LOG_TOOL_DATA=0 logs it)"
)
SdkResult: TypeAlias = RunResult | RunResultStreaming
_STORED_OPTIONS: Final = (
    "max_turns",
    "previous_response_id",
    "auto_previous_response_id",
    "conversation_id",
)


@dataclass(slots=True)
class LiveCall:
    """One run of the SDK in this process: its arguments and its outcome."""

    agent: agents.Agent[Any]
    current: Any
    """The input, or the `RunState` from which the SDK continues."""
    options: dict[str, Any]
    recording: Recording
    streamed: RunResultStreaming | None = None
    context: contextvars.Context = field(default_factory=contextvars.copy_context)
    run: Run | None = None
    asks_again: bool = False
    """Whether the run continues from an undecided state, so it asks the same questions again."""
    task: asyncio.Task[Any] | None = None
    """The SDK's loop, if it has started. It waits for the stored run at its first step."""
    result: SdkResult | None = None
    error: BaseException | None = None


class SdkAgent(Agent):
    """An agent of the Agents SDK as an offbook definition.

    It can be a root, a part of a workflow, or be served over Agent2Agent or on a cluster.

    `offbook.Runner(SdkAgent(agent), store=..., durability="step").recover()` continues the runs of
    a lost process, including those that `offbook.agents_sdk.Runner` started. Objects that exist
    only in memory are recreated: `context_factory()` makes the context,
    `session_factory(session_id)` the session. The id is empty if the provider had not created one.
    """

    def __init__(
        self,
        agent: agents.Agent[Any],
        *,
        run_config: RunConfig | None = None,
        run_hooks: RunHooks[Any] | None = None,
        max_turns: int | None = DEFAULT_MAX_TURNS,
        context_factory: Callable[[], Any] | None = None,
        session_factory: Callable[[str], Session] | None = None,
        on_change: OnChange = "error",
        once: bool = False,
        **options: Unpack[AgentOptions],
    ) -> None:
        if not isinstance(agent, agents.Agent):
            msg = (
                f"SdkAgent(agent) must be an agents.Agent of the SDK, got {agent!r}. A native "
                "agent needs no SdkAgent."
            )
            raise UsageError(msg)
        if on_change not in ("error", RERUN):
            msg = f"on_change must be 'error' or 'rerun_from_here', got {on_change!r}."
            raise UsageError(msg, agent=agent.name)
        super().__init__(name=agent.name, description=agent.handoff_description or "", **options)
        self.agent = agent
        self.run_config = run_config
        self.run_hooks = run_hooks
        self.max_turns = max_turns
        self.context_factory = context_factory
        self.session_factory = session_factory
        self.on_change: OnChange = on_change
        self.once = once

    async def run(self, input: AgentInput, context: AgentContext) -> AsyncIterator[AgentEvent]:
        runtime = runtime_of(context)
        live = context.run.context
        call = live if isinstance(live, LiveCall) else await self._recovered(input, context)
        recording = call.recording
        recording.recovered = not isinstance(live, LiveCall) or isinstance(call.current, RunState)
        if context.resume is not None and context.resume.data == RERUN:
            recording.on_change = "rerun_from_here"
        try:
            waiting = await self._drive(call, runtime)
        except ReplayMismatch as error:
            call.error = error
            details = {name: getattr(error, name) for name in ("step", "recorded", "asked")}
            waiting = [context.interrupt({"error": str(error), **details})]
        except BaseException as error:
            call.error = error
            silent = _debug.DONT_LOG_MODEL_DATA or _debug.DONT_LOG_TOOL_DATA
            if silent and not isinstance(error, CheckpointError | UsageError):
                keep_from_logs(error, _NOT_LOGGED)
            raise
        finally:
            recording.give_up(
                UsageError(
                    "the run of the SDK is over: what it left behind records nothing any more."
                )
            )
        if call.result is not None and (context.session.get(INPUT) or {}).get("named"):
            context.session[RESULT] = stored_form_of(call.result)
        for event in waiting:
            yield event

    async def _drive(self, call: LiveCall, runtime: AgentRuntime) -> list[AgentEvent]:
        """Run the SDK's loop to its end.

        If the run waits, the result contains the event with its interrupts.
        """
        if isinstance(call.current, RunState):
            await note_decisions(call.recording, runtime, call.current)
        call.recording.bind(runtime)
        if call.task is None:
            # In the context of the caller, which has the tracing and the program's own variables.
            call.task = start_task(
                _play(call, runtime), f"the SDK's loop of agent {self.name!r}", context=call.context
            )
        call.result = await (call.task if call.streamed is None else _end_of(call))
        if call.recording.failure is not None:
            raise call.recording.failure
        contexts = tuple(
            runtime.note_interrupt(
                ApprovalRequest(item.tool_name or "", item.arguments or ""),
                None,
                AddressStep("tool", item.tool_name or "", item.call_id or ""),
                approval=True,
            )
            for item in call.result.interruptions
        )
        return [AgentEvent.of(action=Interrupted(contexts))] if contexts else []

    async def _recovered(self, given: AgentInput, context: AgentContext) -> LiveCall:
        """Rebuild the call from the stored run.

        This happens in another process, after an interrupt, or as a step of a workflow.
        """
        stored = context.session.get(INPUT)
        values: Mapping[str, Any] = stored if isinstance(stored, Mapping) else {}
        user_context = (
            context.run.context if self.context_factory is None else self.context_factory()
        )
        options = {
            "context": user_context,
            "max_turns": self.max_turns,
            "hooks": self.run_hooks,
            "run_config": self.run_config or RunConfig(),
            **{name: values[name] for name in _STORED_OPTIONS if name in values},
        }
        recording = Recording(asyncio.get_running_loop(), on_change=self.on_change)
        session_id = values.get("session_id")
        if session_id is not None:
            if self.session_factory is None:
                msg = (
                    f"run {context.run_id} has session {session_id!r}, and "
                    f"SdkAgent({self.name!r}) does not know how to open it. Pass "
                    "session_factory=, for example session_factory=lambda session_id: "
                    "StoreSession(store, session_id)."
                )
                raise CheckpointError(msg, run=context.run_id, agent=self.name)
            for key, step in (runtime_of(context).invocation.steps or {}).items():
                if key.startswith("session/"):
                    session_id = session_id or step["value"][1]
            options["session"] = RecordedSession(self.session_factory(session_id), Scope(recording))
        if self.once and self.run_hooks is not None:
            options["hooks"] = OnceHooks(self.run_hooks, recording)
        if values.get("state") is not None:
            current: Any = await RunState.from_json(
                self.agent, values["state"], context_override=user_context
            )
        else:
            current = values["input"] if "input" in values else items_of_messages(given.messages)
        return LiveCall(self.agent, current, options, recording)


def stored_input(current: Any, options: Mapping[str, Any], *, named: bool) -> dict[str, Any]:
    """Return the data that another process needs to run the same input from the start."""
    values = {name: options[name] for name in _STORED_OPTIONS if options.get(name) is not None}
    if named:
        values["named"] = True
    if (session := options.get("session")) is not None:
        values["session_id"] = session_id_of(session)
    if isinstance(current, RunState):
        values["state"] = current.to_json()
    else:
        values["input"] = (
            current if isinstance(current, str) else json.loads(json.dumps(current, default=_json))
        )
    return {INPUT: values}


def _json(value: Any) -> Any:
    dump = getattr(value, "model_dump", None)
    if dump is None:
        msg = (
            "input items must be mappings or models of the OpenAI client, got a "
            f"{type(value).__name__}: {value!r}."
        )
        raise UsageError(msg)
    return dump(mode="json", exclude_unset=True)


# --- the SDK's loop ---


async def _play(call: LiveCall, runtime: AgentRuntime) -> SdkResult:
    """Run the SDK's loop, and rerun it after each approval whose answer is known."""
    with recorded_by(call.recording):
        current = call.current
        while True:
            result = await _run(call, runtime, current)
            state = await _answered(call.recording, runtime, result)
            if state is None:
                return result
            current = state


async def _run(call: LiveCall, runtime: AgentRuntime, current: Any) -> SdkResult:
    if not runtime.streaming:
        return await AgentRunner().run(call.agent, current, **call.options)
    streamed = AgentRunner().run_streamed(call.agent, current, **call.options)
    async for _ in streamed.stream_events():
        pass  # deltas are shown where the model's stream is recorded
    return streamed


async def _end_of(call: LiveCall) -> SdkResult:
    """Wait for the end of a loop that `run_streamed` has started.

    If this agent is cancelled, so is the loop.
    """
    assert call.streamed is not None
    assert call.task is not None
    try:
        await asyncio.wait([call.task])
    except asyncio.CancelledError:
        call.streamed.cancel()
        raise
    if call.task.cancelled():
        assert call.run is not None
        call.run.cancel()
        await asyncio.get_running_loop().create_future()  # the end of the run cancels this
    call.task.result()
    return call.streamed


# --- approvals ---


async def _answered(
    recording: Recording, runtime: AgentRuntime, result: SdkResult
) -> RunState[Any, Any] | None:
    """Return the state to continue from, if the answer to a waiting call is known."""
    state: RunState[Any, Any] | None = None
    for item in result.interruptions:
        call_id = item.call_id or ""
        name = f"answer/{item.agent.name}/{call_id}"
        decision = recording.decision(runtime, name)
        if decision is None:
            answer = (runtime.invocation.answers or {}).get(call_id)
            if answer is None or not answer.is_target:
                continue
            decision = _decision_of(answer.data)
            await recording.note_decision(runtime, name, decision)
        state = result.to_state() if state is None else state
        if decision["approve"]:
            if decision.get("arguments") is not None:
                recording.edited[call_id] = decision["arguments"]
            state.approve(item, always_approve=decision["always"])
        else:
            state.reject(
                item, always_reject=decision["always"], rejection_message=decision.get("message")
            )
    return state


def _decision_of(data: object) -> dict[str, Any]:
    """Convert a person's answer to the recorded form."""
    if isinstance(data, Approve):
        arguments = data.arguments
        if isinstance(arguments, Mapping):
            arguments = json.dumps(dict(arguments))
        return {"approve": True, "always": False, "arguments": arguments}
    if isinstance(data, Deny):
        return {"approve": False, "always": False, "message": data.reason or None}
    return {"approve": data is True, "always": False}


def decisions_of(state: RunState[Any, Any]) -> dict[str, dict[str, Any]]:
    """Return the program's decisions on a `RunState` about the waiting calls, by their ids."""
    noted: dict[str, dict[str, Any]] = vars(state).get(DECISIONS, {})
    waiting = {item.call_id or "" for item in state.get_interruptions()}
    decided = {call_id: decision for call_id, decision in noted.items() if call_id in waiting}
    if decided.keys() != waiting:
        _read_decisions(state.to_json()["context"], waiting - decided.keys(), decided)
    return decided


def _read_decisions(saved: Any, wanted: set[str], decided: dict[str, dict[str, Any]]) -> None:
    """Read the decisions made before the state was loaded from JSON.

    Each record in the JSON lists the calls that it applies to.
    """
    if isinstance(saved, Mapping) and {"approved", "rejected"} <= saved.keys():
        for call_id in wanted:
            for name, approve in (("approved", True), ("rejected", False)):
                if isinstance(saved[name], list) and call_id in saved[name]:
                    message = (saved.get("rejection_messages") or {}).get(call_id)
                    decided[call_id] = {"approve": approve, "always": False, "message": message}
    for part in (
        saved.values() if isinstance(saved, Mapping) else saved if isinstance(saved, list) else ()
    ):
        _read_decisions(part, wanted, decided)


async def note_decisions(
    recording: Recording, runtime: AgentRuntime, state: RunState[Any, Any]
) -> None:
    """Record the decisions on a state that the SDK continues from, for other processes."""
    agents_of = {item.call_id or "": item.agent.name for item in state.get_interruptions()}
    for call_id, decision in decisions_of(state).items():
        await recording.note_decision(
            runtime, f"answer/{agents_of[call_id]}/{call_id}", decision, last=True
        )
