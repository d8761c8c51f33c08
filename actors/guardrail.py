"""Guardrails: functions that check an agent's input or output and may refuse it.

A guardrail that trips ends its agent with `GuardrailTripped`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, TypedDict, TypeVar, Unpack, overload

from ..runtime.agent.context import AgentContext, runtime_of
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
    """The result of a guardrail: its findings, and whether they must stop the agent."""

    output_info: Any = None
    tripwire_triggered: bool = False


GuardrailFunction: TypeAlias = Callable[
    [RunContext, Any, Any], GuardrailFunctionOutput | Awaitable[GuardrailFunctionOutput]
]
"""A guardrail function, `def` or `async def`.

It receives the run's context, the agent, and the agent's input or output.
"""


@dataclass(frozen=True)
class InputGuardrail:
    """Checks the input of a run: `guardrail_function(context, agent, input)`, def or async def.

    By default it runs in parallel with the first model call, whose output is withheld until the
    guardrail passes. With `run_in_parallel=False` it runs before that call. With `every_agent=True`
    it also runs for each agent that takes over.
    """

    guardrail_function: GuardrailFunction
    name: str | None = None
    run_in_parallel: bool = True
    every_agent: bool = False

    def get_name(self) -> str:
        return self.name or getattr(self.guardrail_function, "__name__", None) or "guardrail"

    async def run(self, context: AgentContext, value: object) -> None:
        """Call the function. Raise `GuardrailTripped` if it trips."""
        await _run(self.guardrail_function, self.get_name(), "input", context, value)


@dataclass(frozen=True)
class OutputGuardrail:
    """Checks the final output of an agent before it is recorded.

    The function is `guardrail_function(context, agent, output)`, def or async def.

    A streaming run has already sent the deltas of a text by then. With `every_agent=True` it also
    checks the outputs of agents that take over.
    """

    guardrail_function: GuardrailFunction
    name: str | None = None
    every_agent: bool = False

    def get_name(self) -> str:
        return self.name or getattr(self.guardrail_function, "__name__", None) or "guardrail"

    async def run(self, context: AgentContext, value: object) -> None:
        """Call the function. Raise `GuardrailTripped` if it trips."""
        await _run(self.guardrail_function, self.get_name(), "output", context, value)


async def _run(
    function: GuardrailFunction, name: str, what: str, context: AgentContext, value: object
) -> None:
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


async def _look(
    function: GuardrailFunction, name: str, what: str, context: AgentContext, value: object
) -> None:
    found = await maybe_await(function(context.run, runtime_of(context).node.agent, value))
    if not isinstance(found, GuardrailFunctionOutput):
        msg = (
            f"the {what} guardrail {name} must return a GuardrailFunctionOutput, got {found!r}. "
            "Return GuardrailFunctionOutput(output_info=..., tripwire_triggered=...)."
        )
        raise UsageError(msg, agent=context.agent_name)
    if found.tripwire_triggered:
        msg = (
            f"the {what} guardrail {name} stopped agent {context.agent_name!r}: "
            f"{found.output_info!r}"
        )
        raise GuardrailTripped(
            msg,
            guardrail=name,
            output_info=found.output_info,
            run=context.run_id,
            agent=context.agent_name,
        )


class _OutputOptions(TypedDict, total=False):
    name: str | None
    every_agent: bool


class _InputOptions(_OutputOptions, total=False):
    run_in_parallel: bool


@overload
def input_guardrail(function: GuardrailFunction, /) -> InputGuardrail: ...
@overload
def input_guardrail(
    *, name: str | None = None, run_in_parallel: bool = True, every_agent: bool = False
) -> Callable[[GuardrailFunction], InputGuardrail]: ...
def input_guardrail(
    function: GuardrailFunction | None = None, /, **options: Unpack[_InputOptions]
) -> InputGuardrail | Callable[[GuardrailFunction], InputGuardrail]:
    """Make an `InputGuardrail` of a function.

    Use `@input_guardrail` or `@input_guardrail(run_in_parallel=False)`.
    """
    return (
        InputGuardrail(function)
        if function is not None
        else lambda given: InputGuardrail(given, **options)
    )


@overload
def output_guardrail(function: GuardrailFunction, /) -> OutputGuardrail: ...
@overload
def output_guardrail(
    *, name: str | None = None, every_agent: bool = False
) -> Callable[[GuardrailFunction], OutputGuardrail]: ...
def output_guardrail(
    function: GuardrailFunction | None = None, /, **options: Unpack[_OutputOptions]
) -> OutputGuardrail | Callable[[GuardrailFunction], OutputGuardrail]:
    """Make an `OutputGuardrail` of a function.

    Use `@output_guardrail` or `@output_guardrail(every_agent=True)`.
    """
    return (
        OutputGuardrail(function)
        if function is not None
        else lambda given: OutputGuardrail(given, **options)
    )


def as_guardrails(
    given: Iterable[G | GuardrailFunction], kind: type[G], whose: str
) -> tuple[G, ...]:
    """Return an agent's guardrails as objects of `kind`. Plain functions are wrapped."""
    found: list[G] = []
    make: Callable[[Any], G] = kind  # the loop below checks the arguments
    for one in given:
        if not isinstance(one, kind) and (not callable(one) or isinstance(one, type)):
            msg = (
                f"agent {whose!r}: guardrails must contain functions of (context, agent, value) "
                f"or {kind.__name__}(function), got {one!r}."
            )
            raise UsageError(msg, agent=whose)
        found.append(one if isinstance(one, kind) else make(one))
    return tuple(found)


Kind: TypeAlias = Literal["input_guardrails", "output_guardrails"]


def names_before(invocation: Invocation) -> tuple[str, ...]:
    """Return the names of the agents whose transfers led to this one or to one that encloses it.

    A new chain starts at an agent that is called as a tool.
    """
    names = names_of(invocation.names)[:-1]
    agent_call = invocation.agent_call
    while (
        agent_call.parent is not None
        and agent_call.parent.agent_call.conversation is agent_call.conversation
    ):
        names = (*names_of(agent_call.parent.names)[:-1], *names)
        agent_call = agent_call.parent.agent_call
    return names


def for_every_agent(node: Node) -> Mapping[tuple[Kind, str], Sequence[object]]:
    """Return the guardrails with `every_agent=True`, by their kind and the name of their agent."""
    found: dict[tuple[Kind, str], list[object]] = {}  # guardrails of the kind in the key
    kinds: tuple[Kind, Kind] = ("input_guardrails", "output_guardrails")
    for other in (one for tree in node.root.trees() for one in tree.walk()):
        for kind in kinds:
            wide = [one for one in getattr(other.agent, kind, ()) if one.every_agent]
            if wide:
                found.setdefault((kind, other.name), []).extend(wide)
    return found


def applying(
    own: Sequence[G],
    kind: Kind,
    before: Sequence[str],
    everywhere: Mapping[tuple[Kind, str], Sequence[Any]],
) -> list[G]:
    """Return the guardrails that apply to an agent.

    They are its own, and those of earlier agents that apply to every agent.
    """
    found = [one for one in own if kind == "output_guardrails" or not before or one.every_agent]
    if everywhere:
        for name in dict.fromkeys(before):
            found += [one for one in everywhere.get((kind, name), ()) if one not in found]
    return found


async def check_all(
    guardrails: Sequence[InputGuardrail | OutputGuardrail], context: AgentContext, value: object
) -> None:
    """Run the guardrails concurrently.

    Raises the exception of the first one that trips or fails, and cancels the others.
    """
    if len(guardrails) == 1:
        await guardrails[0].run(context, value)
    else:
        await runtime_of(context).at_once(
            [one.run(context, value) for one in guardrails], "a guardrail"
        )


def last_input(messages: Sequence[Message]) -> str | tuple[Message, ...]:
    """Return the value for an input guardrail.

    It is the text if there is a single user message, or else all messages.
    """
    if len(messages) == 1 and messages[0].role == "user" and isinstance(messages[0].content, str):
        return messages[0].content
    return tuple(messages)
