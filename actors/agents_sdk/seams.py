"""The functions of the SDK that are wrapped for the recording.

The SDK compares agents and tools by identity, so neither is cloned. A few of its functions are
wrapped once, when this package is imported. Outside of a recorded run, the wrappers do nothing.
Each wraps the innermost function of its kind: everything above it (retries, guardrails,
`failure_error_function`, hooks) is the SDK's own code, which a second attempt runs again.

`PRIVATE` lists the names that are not public in the SDK. A test looks each of them up, so it fails
if a release moves one.
"""

from __future__ import annotations

import functools
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final, cast

from agents import Model, ModelResponse, RunState
from agents.items import TResponseStreamEvent
from agents.run_internal import run_loop, tool_actions, tool_execution
from openai.types.responses import ResponseCompletedEvent, ResponseTextDeltaEvent
from pydantic import BaseModel

from ...runtime.data.chat import Message, MessageDelta
from ...runtime.maybe_await import maybe_await
from .messages import field_of, message_of_reply
from .plain import (
    digest_of,
    output_from_plain,
    output_to_plain,
    response_from_plain,
    response_to_plain,
    typed_from_plain,
    typed_to_plain,
    without_ids,
)
from .recording import Scope, current_scope, idempotency_key, nested

if TYPE_CHECKING:
    from agents import Agent, RunConfig, Session

__all__ = [
    "DECISIONS",
    "ORIGIN",
    "PRIVATE",
    "RecordedModel",
    "RecordedSession",
    "session_id_of",
    "wrap_the_sdk",
]

DECISIONS: Final = "offbook_decisions"
"""The attribute of a `RunState` with the decisions on it."""
ORIGIN: Final = "offbook_origin"
"""The attribute of a `RunState`, and the key in its JSON, for its stored run and interrupts."""

PRIVATE: Final = (
    "agents.run_internal.run_loop.get_model",
    "agents.run_internal.tool_execution._invoke_function_tool_with_metadata",
    "agents.run_internal.tool_actions.ComputerAction._execute_action_and_capture",
    "agents.run_internal.tool_actions.LocalShellAction.execute",
    "agents.run_internal.tool_actions.ShellAction.execute",
    "agents.run_internal.tool_actions.CustomToolAction.execute",
    "agents.run_internal.tool_actions.ApplyPatchAction.execute",
    "agents.tool._FunctionToolInvocationResult",
    "agents._debug.DONT_LOG_MODEL_DATA",
    "agents._debug.DONT_LOG_TOOL_DATA",
)


class _Standin:
    """A proxy of an object, with the same class and all its attributes."""

    def __init__(self, behind: Any) -> None:
        object.__setattr__(self, "_behind", behind)

    @property  # type: ignore[misc]  # for `isinstance`
    def __class__(self) -> Any:
        return type(self._behind)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._behind, name)

    def __setattr__(self, name: str, value: object) -> None:
        setattr(self._behind, name, value)

    def __eq__(self, other: object) -> bool:
        return bool(self._behind == other)

    def __hash__(self) -> int:
        return hash(self._behind)


# --- models ---


class RecordedModel(_Standin):
    """A model whose replies are recorded as steps."""

    def __init__(self, model: Model, scope: Scope, agent: str) -> None:
        super().__init__(model)
        object.__setattr__(self, "_scope", scope)
        object.__setattr__(self, "_agent", agent)

    async def get_response(self, *args: Any, **kwargs: Any) -> ModelResponse:
        scope: Scope = self._scope
        key = await scope.recording.take_turn(scope, self._agent)
        digest = _digest_of_request(args, kwargs)
        try:
            response = await scope.recording.once(
                key,
                digest,
                lambda: self._behind.get_response(*args, **kwargs),
                response_to_plain,
                response_from_plain,
                is_shown=scope.recording.will_show(scope),
            )
        except BaseException:
            scope.recording.give_back(key)
            raise
        if not scope.prefix:
            await scope.recording.show_reply(
                self._agent, message_of_reply(response.output, response.usage)
            )
        return cast("ModelResponse", response)

    async def stream_response(
        self, *args: Any, **kwargs: Any
    ) -> AsyncIterator[TResponseStreamEvent]:
        """Yield the events of a reply.

        The whole reply is recorded when it is complete, before its last event is passed on.
        """
        scope: Scope = self._scope
        recording = scope.recording
        key = await recording.take_turn(scope, self._agent)
        digest = _digest_of_request(args, kwargs)
        recorded = False
        try:
            runtime = await recording.runtime()
            plain = recording.find(runtime, key, digest)
            recorded = plain is not None
            if plain is not None:
                for event in plain:
                    restored = typed_from_plain(event)
                    if isinstance(restored, ResponseCompletedEvent):
                        await self._show(restored)
                    yield restored
                return
            await runtime.make_sure()
            events: list[Any] = []
            async with aclosing(_closable(self._behind.stream_response(*args, **kwargs))) as stream:
                async for event in stream:
                    events.append(typed_to_plain(event))
                    if isinstance(event, ResponseCompletedEvent) and not recorded:
                        await recording.note(
                            runtime, key, digest, events, is_shown=recording.will_show(scope)
                        )
                        recorded = True
                        await self._show(event)
                    elif (
                        runtime.streaming
                        and not scope.prefix
                        and isinstance(event, ResponseTextDeltaEvent)
                    ):
                        await runtime.emit_delta(MessageDelta(content=event.delta))
                    yield event
        except BaseException:
            if not recorded:
                recording.give_back(key)
            raise

    async def _show(self, event: ResponseCompletedEvent) -> None:
        if not self._scope.prefix:
            await self._scope.recording.show_reply(
                self._agent, message_of_reply(event.response.output, event.response.usage)
            )


async def _closable(stream: Any) -> AsyncGenerator[Any, None]:
    """Yield the same events, from a generator that closes its source.

    A custom model may return any kind of iterator.
    """
    try:
        async for event in stream:
            yield event
    finally:
        close = getattr(stream, "aclose", None)
        if close is not None:
            await close()


_REQUEST: Final = (
    "system_instructions",
    "input",
    "model_settings",
    "tools",
    "output_schema",
    "handoffs",
)


def _digest_of_request(args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """Return a digest of a request: its instructions, the conversation, tools and handoffs."""
    request = {**dict(zip(_REQUEST, args, strict=False)), **kwargs}
    schema = request["output_schema"]
    return digest_of(
        request["system_instructions"],
        without_ids(request["input"]),
        [(tool.name, getattr(tool, "params_json_schema", None)) for tool in request["tools"]],
        [(handoff.tool_name, handoff.input_json_schema) for handoff in request["handoffs"]],
        None if schema is None or schema.is_plain_text() else schema.json_schema(),
    )


def _wrap_get_model(
    original: Callable[[Agent[Any], RunConfig], Model],
) -> Callable[[Agent[Any], RunConfig], Any]:
    @functools.wraps(original)
    def get_model(agent: Agent[Any], run_config: RunConfig) -> Any:
        model = original(agent, run_config)
        scope = current_scope()
        if scope is None:
            return model
        # One proxy for each model, agent and scope, because the SDK cleans up each model that it
        # has seen at the end of its run.
        key = (id(model), scope.prefix, agent.name)
        return scope.recording.models.setdefault(key, RecordedModel(model, scope, agent.name))

    return get_model


# --- tools ---


async def _once(
    agent: str,
    call_id: str,
    arguments: object,
    make: Callable[[], Awaitable[Any]],
    *,
    is_shown: bool = False,
) -> Any:
    """Make a tool call once. Return its result, or raise its exception."""
    scope = current_scope()
    assert scope is not None
    key = await scope.recording.call_key(scope, agent, call_id)
    name = scope.recording.name_of(scope, agent, call_id, key, arguments)
    raised: list[Exception] = []
    made: list[Any] = []

    async def call() -> list[Any]:
        try:
            with nested(Scope(scope.recording, f"{key}/", name, f"{name}/")):
                made.append(await make())
        except Exception as error:
            if scope.recording.failure is not None:
                raise
            raised.append(error)
            return ["error", type(error).__qualname__, str(error)]
        return output_to_plain(made[0])

    plain = await scope.recording.once(key, digest_of(arguments), call, is_shown=is_shown)
    if raised:
        raise raised[0]
    return made[0] if made else output_from_plain(plain)


def _wrap_invoke(
    original: Callable[..., Awaitable[Any]], result_class: Callable[..., Any]
) -> Callable[..., Awaitable[Any]]:
    @functools.wraps(original)
    async def invoke(*, function_tool: Any, context: Any, arguments: str) -> Any:
        scope = current_scope()
        if scope is None:
            return await original(function_tool=function_tool, context=context, arguments=arguments)
        recording, call_id = scope.recording, context.tool_call_id
        arguments = recording.edited.get(call_id, arguments)
        generated: list[bool] = []

        async def make() -> Any:
            context.idempotency_key = idempotency_key()
            invoked = await original(
                function_tool=function_tool, context=context, arguments=arguments
            )
            generated.append(invoked.is_sdk_generated_error)
            return invoked.output

        agent = "" if context.agent is None else context.agent.name
        output = await _once(
            agent,
            call_id,
            [function_tool.name, arguments],
            make,
            is_shown=recording.will_show(scope, call_id),
        )
        if not scope.prefix:
            await recording.show_result(
                Message.tool(str(output), call_id=call_id, name=function_tool.name)
            )
        return result_class(output, is_sdk_generated_error=bool(generated and generated[0]))

    return invoke


_local_call: ContextVar[tuple[str, str]] = ContextVar("offbook_agents_sdk_local_call")
"""The agent and the call id of the local tool that is running."""


def _wrap_action(action: type[Any], field: str, names: tuple[str, ...]) -> None:
    """Record the calls of a local tool.

    Its executing function is wrapped once, inside the tool, because hooks must receive the
    program's own tool.
    """
    original = action.execute

    @functools.wraps(original)
    async def execute(*, agent: Any, call: Any, **rest: Any) -> Any:
        if current_scope() is None:
            return await original(agent=agent, call=call, **rest)
        tool = getattr(call, field)
        owner = tool if field != "apply_patch_tool" else tool.editor
        for name in names:
            method = getattr(owner, name, None)  # an editor may lack an unused one
            if callable(method) and not hasattr(method, "is_recorded"):
                setattr(owner, name, _recorded_method(name, method))
        token = _local_call.set((agent.name, _call_id_of(call.tool_call)))
        try:
            return await original(agent=agent, call=call, **rest)
        finally:
            _local_call.reset(token)

    action.execute = staticmethod(execute)


def _recorded_method(name: str, method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def recorded(*args: Any) -> Any:
        if current_scope() is None:
            return method(*args)
        agent, call_id = _local_call.get()
        return _once(agent, call_id, [name, _asked(args)], lambda: maybe_await(method(*args)))

    recorded.is_recorded = True  # type: ignore[attr-defined]  # marks it as wrapped
    return recorded


def _call_id_of(call: Any) -> str:
    return str(field_of(call, "call_id") or field_of(call, "id") or "")


def _asked(args: tuple[Any, ...]) -> list[Any]:
    """Return the arguments that describe the operation, without contexts."""
    found = []
    for arg in args:
        if hasattr(arg, "tool_call_id"):
            continue
        asked = getattr(arg, "data", arg)
        if hasattr(asked, "__dict__") and not isinstance(asked, BaseModel):
            asked = {name: value for name, value in vars(asked).items() if name != "ctx_wrapper"}
        found.append(asked)
    return found


def _wrap_computer(action: type[Any]) -> None:
    original = action._execute_action_and_capture

    @functools.wraps(original)
    async def capture(computer: Any, tool_call: Any) -> Any:
        if current_scope() is None:
            return await original(computer, tool_call)
        call_id = _call_id_of(tool_call)
        return await _once("", call_id, tool_call, lambda: original(computer, tool_call))

    action._execute_action_and_capture = staticmethod(capture)


# --- sessions ---


def session_id_of(session: Session) -> str:
    """Return the id of a session. It is empty until a provider has created the session."""
    try:
        return session.session_id
    except (AttributeError, ValueError):  # as the sessions of the SDK report it
        return ""


class RecordedSession(_Standin):
    """A session whose reads and writes are recorded as steps.

    Its methods have the signatures of the program's session, which the SDK inspects.
    """

    def __init__(self, session: Session, scope: Scope) -> None:
        super().__init__(session)
        for name in ("get_items", "add_items", "pop_item", "clear_session"):
            object.__setattr__(self, name, self._recorded(name, getattr(session, name), scope))

    def _recorded(
        self, name: str, method: Callable[..., Any], scope: Scope
    ) -> Callable[..., Awaitable[Any]]:
        @functools.wraps(method)
        async def recorded(*args: Any, **kwargs: Any) -> Any:
            recording, writes = scope.recording, name == "add_items"
            items: Any = args[0] if args else kwargs.get("items")
            await recording.runtime()
            key = recording.next_key(f"{scope.prefix}session/{name}")
            made: list[Any] = []

            async def call() -> list[Any]:
                # A process that was killed between the write and its record has already written.
                known = writes and recording.recovered and await self._ends_with(items, kwargs)
                made.append(None if known else await maybe_await(method(*args, **kwargs)))
                read = typed_to_plain(made[0]) if name in ("get_items", "pop_item") else None
                return [read, session_id_of(self._behind)]

            digest = digest_of(without_ids(items)) if writes else None
            plain = await recording.once(key, digest, call)
            return made[0] if made else typed_from_plain(plain[0])

        return recorded

    async def _ends_with(self, items: Any, kwargs: dict[str, Any]) -> bool:
        """Return whether the last items of the session are these."""
        scoped = {"wrapper": kwargs["wrapper"]} if "wrapper" in kwargs else {}
        last = await self._behind.get_items(limit=len(items), **scoped) if items else None
        return last is not None and bool(last == items)


# --- decisions ---


def _wrap_decision(name: str, *, approve: bool) -> None:
    """Make a `RunState` store its decisions, for the recording of the run that it continues."""
    original = getattr(RunState, name)

    @functools.wraps(original)
    def decide(state: Any, approval_item: Any, *args: Any, **kwargs: Any) -> None:
        original(state, approval_item, *args, **kwargs)
        always = bool(
            args[0] if args else kwargs.get("always_approve" if approve else "always_reject", False)
        )
        decision = {
            "approve": approve,
            "always": always,
            "message": kwargs.get("rejection_message"),
        }
        vars(state).setdefault(DECISIONS, {})[approval_item.call_id or ""] = decision

    setattr(RunState, name, decide)


def _wrap_json() -> None:
    """Make the JSON of a `RunState` name its stored run.

    So the answers in it stay bound to the run's questions.
    """
    to_json, from_json = RunState.to_json, RunState.from_json

    @functools.wraps(to_json)
    def with_origin(state: Any, *args: Any, **kwargs: Any) -> dict[str, Any]:
        saved = to_json(state, *args, **kwargs)
        origin = vars(state).get(ORIGIN)
        return saved if origin is None else {**saved, ORIGIN: origin}

    @functools.wraps(from_json)
    async def find_origin(
        initial_agent: Any, state_json: dict[str, Any], *args: Any, **kwargs: Any
    ) -> Any:
        origin = state_json.get(ORIGIN) if isinstance(state_json, dict) else None
        if origin is not None:
            state_json = {name: value for name, value in state_json.items() if name != ORIGIN}
        state = await from_json(initial_agent, state_json, *args, **kwargs)
        if origin is not None:
            vars(state)[ORIGIN] = origin
        return state

    state_class = cast("Any", RunState)
    state_class.to_json, state_class.from_json = with_origin, staticmethod(find_origin)


def wrap_the_sdk() -> None:
    """Wrap the functions of the SDK. Further calls do nothing."""
    if hasattr(run_loop.get_model, "__wrapped__"):
        return
    from agents.tool import _FunctionToolInvocationResult  # noqa: PLC0415 -- the result of the wrapped function

    loop, execution = cast("Any", run_loop), cast("Any", tool_execution)
    loop.get_model = _wrap_get_model(run_loop.get_model)
    execution._invoke_function_tool_with_metadata = _wrap_invoke(
        execution._invoke_function_tool_with_metadata, _FunctionToolInvocationResult
    )
    _wrap_computer(tool_actions.ComputerAction)
    for action, field, names in (
        (tool_actions.LocalShellAction, "local_shell_tool", ("executor",)),
        (tool_actions.ShellAction, "shell_tool", ("executor",)),
        (tool_actions.CustomToolAction, "custom_tool", ("on_invoke_tool",)),
        (
            tool_actions.ApplyPatchAction,
            "apply_patch_tool",
            ("create_file", "update_file", "delete_file"),
        ),
    ):
        _wrap_action(action, field, names)
    _wrap_json()
    _wrap_decision("approve", approve=True)
    _wrap_decision("reject", approve=False)
