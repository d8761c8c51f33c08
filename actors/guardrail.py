"""Guardrails: functions that look at what goes into an agent, or at what comes out of it, and may say that it must not be.

Owns: what they are, how they are called, and that one which trips ends its agent with `GuardrailTripped`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, TypedDict, TypeVar, Unpack, overload

from ..runtime.agent.context import AgentContext, door_of
from ..runtime.agent.invocation import Invocation
from ..runtime.agent.run_context import RunContext
from ..runtime.agent.tree import Node
from ..runtime.data.chat import Message
from ..runtime.data.run_path import names_of
from ..runtime.errors import GuardrailTripped, UsageError
from ..runtime.maybe_await import maybe_await

__all__ = [
    "GuardrailFunction",
    "GuardrailFunctionOutput",
    "InputGuardrail",
    "OutputGuardrail",
    "applying",
    "as_guardrails",
    "check_all",
    "for_every_agent",
    "input_guardrail",
    "last_input",
    "names_before",
    "output_guardrail",
]

G = TypeVar("G", bound="InputGuardrail | OutputGuardrail")


@dataclass(frozen=True)
class GuardrailFunctionOutput:
    """What a guardrail has found, and whether that must not be."""

    output_info: Any = None
    tripwire_triggered: bool = False


GuardrailFunction: TypeAlias = Callable[[RunContext, Any, Any], GuardrailFunctionOutput | Awaitable[GuardrailFunctionOutput]]
"""Is given the run's context, the agent, and what it is asked or ends with; `def` or `async def`."""


@dataclass(frozen=True)
class InputGuardrail:
    """Looks at what a run is asked: `guardrail_function(context, agent, input)`, def or async def.

    It runs beside the first call of the model, and nothing of that is shown before it has passed; with `run_in_parallel=False`, before it. With
    `every_agent=True` it runs for each agent that takes over, too.
    """

    guardrail_function: GuardrailFunction
    name: str | None = None
    run_in_parallel: bool = True
    every_agent: bool = False

    def get_name(self) -> str:
        return self.name or getattr(self.guardrail_function, "__name__", None) or "guardrail"

    async def run(self, context: AgentContext, value: object) -> None:
        """Raise `GuardrailTripped`, if it trips."""
        await _run(self.guardrail_function, self.get_name(), "input", context, value)


@dataclass(frozen=True)
class OutputGuardrail:
    """Looks at what an agent ends with, before that is recorded: `guardrail_function(context, agent, output)`.

    A run that streams has shown the pieces of a text by then. With `every_agent=True`, at what those end with that take over, too.
    """

    guardrail_function: GuardrailFunction
    name: str | None = None
    every_agent: bool = False

    def get_name(self) -> str:
        return self.name or getattr(self.guardrail_function, "__name__", None) or "guardrail"

    async def run(self, context: AgentContext, value: object) -> None:
        """Raise `GuardrailTripped`, if it trips."""
        await _run(self.guardrail_function, self.get_name(), "output", context, value)


async def _run(function: GuardrailFunction, name: str, what: str, context: AgentContext, value: object) -> None:
    watch = context.run.watch
    if watch is not None:
        opened, trips, problem = watch.guardrail(name, what), False, None
        try:
            await _look(function, name, what, context, value)
        except BaseException as error:
            trips, problem = isinstance(error, GuardrailTripped), error
            raise
        finally:
            watch.guarded(opened, problem, tripped=trips)
        return
    await _look(function, name, what, context, value)


async def _look(function: GuardrailFunction, name: str, what: str, context: AgentContext, value: object) -> None:
    found = await maybe_await(function(context.run, door_of(context).node.agent, value))
    if not isinstance(found, GuardrailFunctionOutput):
        msg = f"the {what} guardrail {name} returned {found!r}: return a GuardrailFunctionOutput(output_info=..., tripwire_triggered=...)."
        raise UsageError(msg, agent=context.agent_name)
    if found.tripwire_triggered:
        msg = f"the {what} guardrail {name} has tripped at agent {context.agent_name!r}: {found.output_info!r}"
        raise GuardrailTripped(msg, guardrail=name, output_info=found.output_info, run=context.run_id, agent=context.agent_name)


class _OutputOptions(TypedDict, total=False):
    name: str | None
    every_agent: bool


class _InputOptions(_OutputOptions, total=False):
    run_in_parallel: bool


@overload
def input_guardrail(function: GuardrailFunction, /) -> InputGuardrail: ...
@overload
def input_guardrail(*, name: str | None = None, run_in_parallel: bool = True, every_agent: bool = False) -> Callable[[GuardrailFunction], InputGuardrail]: ...
def input_guardrail(
    function: GuardrailFunction | None = None, /, **options: Unpack[_InputOptions]
) -> InputGuardrail | Callable[[GuardrailFunction], InputGuardrail]:
    """Make an `InputGuardrail` of a function: `@input_guardrail`, or `@input_guardrail(run_in_parallel=False)`."""
    return InputGuardrail(function) if function is not None else lambda given: InputGuardrail(given, **options)


@overload
def output_guardrail(function: GuardrailFunction, /) -> OutputGuardrail: ...
@overload
def output_guardrail(*, name: str | None = None, every_agent: bool = False) -> Callable[[GuardrailFunction], OutputGuardrail]: ...
def output_guardrail(
    function: GuardrailFunction | None = None, /, **options: Unpack[_OutputOptions]
) -> OutputGuardrail | Callable[[GuardrailFunction], OutputGuardrail]:
    """Make an `OutputGuardrail` of a function: `@output_guardrail`, or `@output_guardrail(every_agent=True)`."""
    return OutputGuardrail(function) if function is not None else lambda given: OutputGuardrail(given, **options)


def as_guardrails(given: Iterable[G | GuardrailFunction], kind: type[G], whose: str) -> tuple[G, ...]:
    """What was given as an agent's guardrails: such, or plain functions."""
    found: list[G] = []
    make: Callable[[Any], G] = kind  # refuses nothing: what it is given is checked here
    for one in given:
        if not isinstance(one, kind) and (not callable(one) or isinstance(one, type)):
            msg = f"agent {whose!r}: {one!r} is no {kind.__name__}: give a function of (context, agent, value), or {kind.__name__}(function)."
            raise UsageError(msg, agent=whose)
        found.append(one if isinstance(one, kind) else make(one))
    return tuple(found)


Kind: TypeAlias = Literal["input_guardrails", "output_guardrails"]


def names_before(invocation: Invocation) -> tuple[str, ...]:
    """The agents that have handed over until this one, or what encloses it, had its turn. An agent that is called as a tool is in no line."""
    names = names_of(invocation.names)[:-1]
    assignment = invocation.assignment
    while assignment.parent is not None and assignment.parent.assignment.dialogue is assignment.dialogue:
        names = (*names_of(assignment.parent.names)[:-1], *names)
        assignment = assignment.parent.assignment
    return names


def for_every_agent(node: Node) -> Mapping[tuple[Kind, str], Sequence[object]]:
    """The guardrails that are for every agent to come: by their kind, and the name of the agent whose they are."""
    found: dict[tuple[Kind, str], list[object]] = {}  # guardrails of the kind that the key says
    kinds: tuple[Kind, Kind] = ("input_guardrails", "output_guardrails")
    for other in (one for tree in node.root.trees() for one in tree.walk()):
        for kind in kinds:
            wide = [one for one in getattr(other.agent, kind, ()) if one.every_agent]
            if wide:
                found.setdefault((kind, other.name), []).extend(wide)
    return found


def applying(own: Sequence[G], kind: Kind, before: Sequence[str], everywhere: Mapping[tuple[Kind, str], Sequence[Any]]) -> list[G]:
    """Which guardrails are for an agent now: its own, and those of agents before it that are for every agent."""
    found = [one for one in own if kind == "output_guardrails" or not before or one.every_agent]
    if everywhere:
        for name in dict.fromkeys(before):
            found += [one for one in everywhere.get((kind, name), ()) if one not in found]
    return found


async def check_all(guardrails: Sequence[InputGuardrail | OutputGuardrail], context: AgentContext, value: object) -> None:
    """Run them at once. Raises what the first one raises that trips or fails, and the others are cancelled."""
    if len(guardrails) == 1:
        await guardrails[0].run(context, value)
    else:
        await door_of(context).at_once([one.run(context, value) for one in guardrails])


def last_input(messages: Sequence[Message]) -> str | tuple[Message, ...]:
    """What a guardrail of the input is given: the text, if it is one message of the user's, and else the messages."""
    if len(messages) == 1 and messages[0].role == "user" and isinstance(messages[0].content, str):
        return messages[0].content
    return tuple(messages)
