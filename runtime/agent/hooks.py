"""Callbacks that look on: of all runs of the process, of a run, and of one agent.

Owns: the two sets of hooks, those that are for all runs, and how they are called. A hook may be `def` or `async def`. One that raises is logged, and
changes nothing; whatever a hook returns is not used. Hooks that are not overridden cost one look into a set.
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

__all__ = ["AgentHooks", "HookResult", "RunHooks", "add_global_hooks", "call_hooks", "check_hooks", "hooks_of_a_run", "is_overridden"]


HookResult: TypeAlias = Awaitable[object] | None
"""What a hook returns: nothing, or, if it is `async def`, something to await."""

_everywhere: Final[dict[object, RunHooks]] = {}


class _Hooks:
    """Checks, when a class of hooks is made, that each hook is one that there is, and takes what it will be given."""

    _overridden: ClassVar[frozenset[str]] = frozenset()

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        base = next(known for known in (RunHooks, AgentHooks) if issubclass(cls, known)) if cls.__module__ != __name__ else cls
        known = {name: member for name, member in vars(base).items() if name.startswith("on_")}
        found = {name for owner in cls.__mro__ if owner not in (base, _Hooks, object) for name in vars(owner) if name.startswith("on_")}
        for name in sorted(found):
            if name not in known:
                msg = f"{cls.__name__}.{name}: there is no such hook. {base.__name__} has: {', '.join(known)}."
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
        msg = f"{cls.__name__}.{name} has the wrong signature ({problem}): it is called as {name}({', '.join(given[1:])})."
        raise UsageError(msg) from None


class RunHooks(_Hooks):
    """What a whole run does. Give one to the Runner: `Runner(agent, hooks=MyHooks())`."""

    def on_run_start(self, context: RunContext, input: AgentInput) -> HookResult: ...  # noqa: A002 -- what it is
    def on_run_end(self, context: RunContext, result: RunResult) -> HookResult: ...
    def on_agent_start(self, context: RunContext, agent: Any) -> HookResult: ...
    def on_agent_end(self, context: RunContext, agent: Any, outcome: Outcome) -> HookResult: ...
    def on_model_start(self, context: RunContext, agent: Any, request: ModelRequest) -> HookResult: ...
    def on_model_end(self, context: RunContext, agent: Any, message: Message) -> HookResult: ...
    def on_tool_start(self, context: RunContext, agent: Any, tool: Any, call: ToolCall) -> HookResult: ...
    def on_tool_end(self, context: RunContext, agent: Any, tool: Any, result: Message) -> HookResult: ...
    def on_transfer(self, context: RunContext, from_agent: Any, to_agent: Any) -> HookResult: ...
    def on_handoff(self, context: RunContext, from_agent: Any, to_agent: Any) -> HookResult: ...


class AgentHooks(_Hooks):
    """What one agent does, in whatever run. Give one to the agent: `ChatModelAgent(..., hooks=MyHooks())`."""

    def on_start(self, context: RunContext, agent: Any) -> HookResult: ...
    def on_end(self, context: RunContext, agent: Any, outcome: Outcome) -> HookResult: ...
    def on_model_start(self, context: RunContext, agent: Any, request: ModelRequest) -> HookResult: ...
    def on_model_end(self, context: RunContext, agent: Any, message: Message) -> HookResult: ...
    def on_tool_start(self, context: RunContext, agent: Any, tool: Any, call: ToolCall) -> HookResult: ...
    def on_tool_end(self, context: RunContext, agent: Any, tool: Any, result: Message) -> HookResult: ...
    def on_transfer(self, context: RunContext, agent: Any, source: Any) -> HookResult: ...
    def on_handoff(self, context: RunContext, agent: Any, source: Any) -> HookResult: ...


def check_hooks(hooks: object, kind: type[RunHooks | AgentHooks], where: str) -> None:
    """Raise unless these are hooks of that kind."""
    if hooks is not None and not isinstance(hooks, kind):
        msg = f"{where}: hooks={hooks!r} are no {kind.__name__}. Give an instance of a subclass of understudy.runtime.{kind.__name__}."
        raise UsageError(msg)


def add_global_hooks(hooks: RunHooks) -> Callable[[], None]:
    """Have these hooks look on at all runs of this process, whichever Runner begins them. Returns what removes them again.

    They are called before the hooks of the Runner and of the agents, in the order in which they were added. A run keeps those that were there when it was made.
    """
    if not isinstance(hooks, RunHooks):
        msg = f"add_global_hooks({hooks!r}): give an instance of a subclass of understudy.runtime.RunHooks."
        raise UsageError(msg)
    key = object()
    _everywhere[key] = hooks

    def remove() -> None:
        _everywhere.pop(key, None)

    return remove


def hooks_of_a_run(own: RunHooks | None) -> tuple[RunHooks, ...]:
    """What looks on at a run that is made now, in the order of their calls."""
    if not _everywhere:
        return () if own is None else (own,)
    return (*tuple(_everywhere.values()), *(() if own is None else (own,)))


def is_overridden(hooks: Iterable[RunHooks], name: str) -> bool:
    """Whether there is something to call for that hook."""
    return any(name in one._overridden for one in hooks)


async def call_hooks(run_hooks: Iterable[RunHooks], agent_hooks: AgentHooks | None, name: str, agent_name: str | None, *args: object) -> None:
    """Call one hook of each set that has it: the run's, then the agent's. `agent_name` is the agent hook's, if it has another."""
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
        loggers.agent.exception("The hook %s.%s was cancelled from within. The run goes on without it.", type(hooks).__name__, name)
    except Exception:  # noqa: BLE001 -- a hook changes nothing, whatever it raises
        loggers.agent.exception("The hook %s.%s raised. The run goes on without it.", type(hooks).__name__, name)
