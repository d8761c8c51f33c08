"""Callbacks that observe all runs of the process, one run, or one agent.

A hook may be `def` or `async def`. If it raises, the error is logged and the run continues
unchanged. A hook's return value is ignored. A hook that is not overridden costs one set lookup.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeAlias

from ..errors import UsageError
from ..log import loggers
from ..maybe_await import maybe_await

if TYPE_CHECKING:
    from ..data.agent_input import AgentInput
    from ..data.chat import Message, ToolCall
    from ..data.outcome import Outcome
    from ..data.run_result import RunResult
    from ..models.protocol import ModelRequest
    from .run_context import RunContext

__all__ = [
    "AgentHooks",
    "HookResult",
    "RunHooks",
    "add_global_hooks",
    "call_hooks",
    "check_hooks",
    "hooks_of_a_run",
    "is_overridden",
]


HookResult: TypeAlias = Awaitable[object] | None
"""The return type of a hook: None, or an awaitable from an `async def`."""

_everywhere: Final[dict[object, RunHooks]] = {}


class _Hooks:
    """Base class that checks a class of hooks when it is defined.

    Each hook must exist, and must accept the arguments it will be called with.
    """

    _overridden: ClassVar[frozenset[str]] = frozenset()

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        base = (
            next(known for known in (RunHooks, AgentHooks) if issubclass(cls, known))
            if cls.__module__ != __name__
            else cls
        )
        known = {name: member for name, member in vars(base).items() if name.startswith("on_")}
        found = {
            name
            for owner in cls.__mro__
            if owner not in (base, _Hooks, object)
            for name in vars(owner)
            if name.startswith("on_")
        }
        for name in sorted(found):
            if name not in known:
                msg = (
                    f"{cls.__name__}.{name}: unknown hook. The hooks of {base.__name__} "
                    f"are {', '.join(known)}."
                )
                raise UsageError(msg)
            _check_signature(cls, name, known[name])
        cls._overridden = frozenset(found)


def _check_signature(cls: type, name: str, model: Callable[..., object]) -> None:
    given = list(inspect.signature(model).parameters)
    hook = inspect.getattr_static(cls, name)
    arguments = given if inspect.isfunction(hook) else given[1:]
    try:
        inspect.signature(getattr(cls, name)).bind(*arguments)
    except TypeError as problem:
        msg = (
            f"{cls.__name__}.{name} has the wrong signature ({problem}): it is called as "
            f"{name}({', '.join(given[1:])})."
        )
        raise UsageError(msg) from None


class RunHooks(_Hooks):
    """Hooks for a whole run: `Runner(agent, hooks=MyHooks())`."""

    def on_run_start(self, context: RunContext, input: AgentInput) -> HookResult: ...  # noqa: A002 -- the contract's name
    def on_run_end(self, context: RunContext, result: RunResult) -> HookResult: ...
    def on_agent_start(self, context: RunContext, agent: Any) -> HookResult: ...
    def on_agent_end(self, context: RunContext, agent: Any, outcome: Outcome) -> HookResult: ...
    def on_model_start(
        self, context: RunContext, agent: Any, request: ModelRequest
    ) -> HookResult: ...
    def on_model_end(self, context: RunContext, agent: Any, message: Message) -> HookResult: ...
    def on_tool_start(
        self, context: RunContext, agent: Any, tool: Any, call: ToolCall
    ) -> HookResult: ...
    def on_tool_end(
        self, context: RunContext, agent: Any, tool: Any, result: Message
    ) -> HookResult: ...
    def on_transfer(self, context: RunContext, from_agent: Any, to_agent: Any) -> HookResult: ...
    def on_handoff(self, context: RunContext, from_agent: Any, to_agent: Any) -> HookResult: ...


class AgentHooks(_Hooks):
    """Hooks for one agent, in every run: `ChatModelAgent(..., hooks=MyHooks())`."""

    def on_start(self, context: RunContext, agent: Any) -> HookResult: ...
    def on_end(self, context: RunContext, agent: Any, outcome: Outcome) -> HookResult: ...
    def on_model_start(
        self, context: RunContext, agent: Any, request: ModelRequest
    ) -> HookResult: ...
    def on_model_end(self, context: RunContext, agent: Any, message: Message) -> HookResult: ...
    def on_tool_start(
        self, context: RunContext, agent: Any, tool: Any, call: ToolCall
    ) -> HookResult: ...
    def on_tool_end(
        self, context: RunContext, agent: Any, tool: Any, result: Message
    ) -> HookResult: ...
    def on_transfer(self, context: RunContext, agent: Any, source: Any) -> HookResult: ...
    def on_handoff(self, context: RunContext, agent: Any, source: Any) -> HookResult: ...


def check_hooks(hooks: object, kind: type[RunHooks | AgentHooks], where: str) -> None:
    """Raise unless `hooks` is an instance of `kind`."""
    if hooks is not None and not isinstance(hooks, kind):
        msg = (
            f"{where}: hooks must be an instance of a subclass of "
            f"offbook.runtime.{kind.__name__}, got {hooks!r}."
        )
        raise UsageError(msg)


def add_global_hooks(hooks: RunHooks) -> Callable[[], None]:
    """Add hooks that observe all runs of this process, whichever Runner starts them.

    Returns a function that removes them. They are called before the hooks of the Runner and of the
    agents, in the order in which they were added. A run uses the hooks that existed when it was
    created.
    """
    if not isinstance(hooks, RunHooks):
        msg = (
            "add_global_hooks: hooks must be an instance of a subclass of "
            f"offbook.runtime.RunHooks, got {hooks!r}."
        )
        raise UsageError(msg)
    key = object()
    _everywhere[key] = hooks

    def remove() -> None:
        _everywhere.pop(key, None)

    return remove


def hooks_of_a_run(own: RunHooks | None) -> tuple[RunHooks, ...]:
    """Return the run hooks for a run that is created now, in the order of their calls."""
    if not _everywhere:
        return () if own is None else (own,)
    return (*tuple(_everywhere.values()), *(() if own is None else (own,)))


def is_overridden(hooks: Iterable[RunHooks], name: str) -> bool:
    """Return True if one of the hooks overrides `name`."""
    return any(name in one._overridden for one in hooks)


async def call_hooks(
    run_hooks: Iterable[RunHooks],
    agent_hooks: AgentHooks | None,
    name: str,
    agent_name: str | None,
    *args: object,
) -> None:
    """Call one hook of each object that overrides it: the run's first, then the agent's.

    `agent_name` is the name of the agent's hook, if it differs.
    """
    for one in run_hooks:
        if name in one._overridden:
            await _call(one, name, args)
    other = agent_name or name
    if agent_hooks is not None and other in agent_hooks._overridden:
        await _call(agent_hooks, other, args)


async def _call(hooks: _Hooks, name: str, args: tuple[object, ...]) -> None:
    try:
        await maybe_await(getattr(hooks, name)(*args))
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        loggers.agent.exception(
            "The hook %s.%s was cancelled by its own code. The run continues without it.",
            type(hooks).__name__,
            name,
        )
    except Exception:  # noqa: BLE001 -- an error in a hook changes nothing
        loggers.agent.exception(
            "The hook %s.%s raised. The run continues without it.", type(hooks).__name__, name
        )
