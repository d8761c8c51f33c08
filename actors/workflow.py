"""Workflows: agents without a model that run others in sequence, in a loop or in parallel.

A workflow records its position in its state, so it resumes from there.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from itertools import chain, islice, pairwise, repeat
from typing import Any, ClassVar, Literal, Unpack

from ..runtime.agent.agent_runtime import AgentRuntime
from ..runtime.agent.context import AgentContext, runtime_of
from ..runtime.agent.history import Lane
from ..runtime.agent.tree import Node
from ..runtime.data.agent_input import AgentInput
from ..runtime.data.events import AgentEvent, Interrupted
from ..runtime.data.outcome import Outcome, joined
from ..runtime.data.run_path import Path, as_path, extended
from ..runtime.errors import UsageError
from ..runtime.log import loggers
from .agent import Agent, AgentOptions, check_option_names

__all__ = ["Loop", "Parallel", "Sequential"]


class _Workflow(Agent):
    allows_transfer: bool = False

    def check(self, node: Node) -> None:
        """Warn, when a Runner is made, if there is no sub-agent to run."""
        if not node.children:
            loggers.workflow.warning(
                "%s %r has no sub-agents, so it ends at once. Use the copy that "
                "set_sub_agents(...) returns.",
                type(self).__name__,
                self.name,
            )


class Sequential(_Workflow):
    """Runs its sub-agents in order, until one of them fails, exits or is interrupted."""

    interrupt_info: ClassVar[str | None] = "Sequential workflow interrupted"

    def __init__(
        self,
        *,
        name: str,
        description: str = "",
        sub_agents: Sequence[Agent],
        **agent_options: Unpack[AgentOptions],
    ) -> None:
        check_option_names(Sequential, agent_options)
        super().__init__(name=name, description=description, sub_agents=sub_agents, **agent_options)

    async def run(self, input: AgentInput, context: AgentContext) -> AsyncIterator[AgentEvent]:  # noqa: A002 -- the documented name
        state = context.state
        runtime = runtime_of(context)
        children = runtime.node.children
        start: int = state.get("next", 0)
        base = as_path((child.name for child in children[:start]), runtime.invocation.run_path)
        for index in range(start, len(children)):
            outcome = await runtime.cast_node(
                children[index], base, runtime.invocation.lane, index, one_at_a_time=True
            )
            if outcome.kind != "finished" or outcome.broke:
                return
            base = extended(base, children[index].name)
            state["next"] = index + 1
        return
        yield


class Loop(_Workflow):
    """Runs its sub-agents in order, repeatedly, at most `max_iterations` times.

    It ends early when one of them sends `BreakLoop` or `Exit`.

    None means no bound, which can be expensive if models run in the loop.
    """

    interrupt_info: ClassVar[str | None] = "Loop workflow interrupted"

    def __init__(
        self,
        *,
        name: str,
        description: str = "",
        sub_agents: Sequence[Agent],
        max_iterations: int | None = 10,
        **agent_options: Unpack[AgentOptions],
    ) -> None:
        check_option_names(Loop, agent_options)
        super().__init__(name=name, description=description, sub_agents=sub_agents, **agent_options)
        if max_iterations is not None and max_iterations < 0:
            msg = (
                f"Loop {name!r}: max_iterations must be a number of rounds, 1 or more, or None "
                f"for no bound, got {max_iterations}."
            )
            raise UsageError(msg, agent=name)
        self.max_iterations = max_iterations

    async def run(self, input: AgentInput, context: AgentContext) -> AsyncIterator[AgentEvent]:  # noqa: A002 -- the documented name
        state = context.state
        runtime = runtime_of(context)
        children = runtime.node.children
        base = _passed(state, [child.name for child in children], runtime.invocation.run_path)
        iteration: int = state.get("iteration", 0)
        while children and not (self.max_iterations and iteration >= self.max_iterations):
            for index in range(state.get("next", 0), len(children)):
                cast_key = f"{iteration}.{index}"
                outcome = await runtime.cast_node(
                    children[index],
                    base,
                    runtime.invocation.lane,
                    cast_key,
                    loop=iteration,
                    one_at_a_time=True,
                )
                if outcome.kind != "finished":
                    return
                if outcome.broke:
                    # BreakLoop ends only this loop.
                    runtime.last_cast = Outcome(message=outcome.message)
                    return
                base = extended(base, children[index].name)
                state["next"] = index + 1
            iteration += 1
            state["iteration"], state["next"] = iteration, 0
            # Children that never await would starve every other task on the event loop.
            await asyncio.sleep(0)
        return
        yield


def _passed(state: dict[str, Any], names: Sequence[str], path: Path) -> Path:
    """Return the run path after all the turns a loop has run.

    The state records only the turn at which each number of children started, not every turn.
    """
    at = (state.get("iteration", 0), state.get("next", 0))
    spans: list[list[int]] = state.get("spans") or (
        [[0, 0, state["of"]]] if "of" in state else [[*at, len(names)]]
    )
    if spans[-1][2] != len(names):
        spans = [*spans, [*at, len(names)]]  # children were added
    if len(spans) == 1 and not any(spans[0][:2]):
        state["of"] = len(names)
    else:
        state["spans"] = spans
    path = as_path(state.get("passed", ()), path)  # recorded name by name by an earlier version
    for (iteration, begun, count), (next_iteration, end, *_) in pairwise([*spans, [*at, 0]]):
        path = as_path(
            islice(
                chain(*repeat(names[:count], next_iteration - iteration), names[:end]), begun, None
            ),
            path,
        )
    return path


class Parallel(_Workflow):
    """Runs all its sub-agents at once, each as its own actor.

    Each sees the earlier history and its own messages.

    `max_concurrency` bounds how many run at a time. If a child fails, the others continue
    (`on_error="isolate"`) or are cancelled (`"cancel"`). Once all have ended, the Parallel fails
    with the child's error.
    """

    unique_children: bool = False
    interrupt_info: ClassVar[str | None] = "Parallel workflow interrupted"

    def __init__(
        self,
        *,
        name: str,
        description: str = "",
        sub_agents: Sequence[Agent],
        max_concurrency: int | None = None,
        on_error: Literal["isolate", "cancel"] = "isolate",
        **agent_options: Unpack[AgentOptions],
    ) -> None:
        check_option_names(Parallel, agent_options)
        super().__init__(name=name, description=description, sub_agents=sub_agents, **agent_options)
        if max_concurrency is not None and max_concurrency < 1:
            msg = (
                f"Parallel {name!r}: max_concurrency must be 1 or more, or None for no "
                f"bound, got {max_concurrency}."
            )
            raise UsageError(msg, agent=name)
        if on_error not in ("isolate", "cancel"):
            msg = f"Parallel {name!r}: on_error must be 'isolate' or 'cancel', got {on_error!r}."
            raise UsageError(msg, agent=name)
        self.max_concurrency = max_concurrency
        self.on_error = on_error

    async def run(self, input: AgentInput, context: AgentContext) -> AsyncIterator[AgentEvent]:  # noqa: A002 -- the documented name
        runtime = runtime_of(context)
        children = runtime.node.children
        outcomes, cause = await self._play(runtime, children, runtime.lanes(len(children)))
        whole = cause or joined(outcomes)
        if whole.kind == "interrupted":
            yield AgentEvent.of(action=Interrupted(whole.contexts))
            return
        if not context.state.get("joined"):
            await runtime.join()
            context.state["joined"] = True
        runtime.last_cast = whole

    async def _play(
        self, runtime: AgentRuntime, children: tuple[Node, ...], lanes: list[Lane]
    ) -> tuple[list[Outcome], Outcome | None]:
        """Run all of them.

        Returns the outcome of each child that was started, and the failure that cancelled the
        others.
        """
        most = self.max_concurrency or len(children)
        outcomes: dict[int, Outcome] = {}
        ended = asyncio.Event()
        begun = 0
        to_begin = len(children)
        cause: Outcome | None = None
        # Whether to wake up at the end of each child, or only at the end of the last one.
        each = self.on_error == "cancel" or most < len(children)
        while begun < to_begin or len(outcomes) < begun:
            while begun < to_begin and begun - len(outcomes) < most:
                await runtime.begin_cast(
                    children[begun],
                    runtime.invocation.run_path,
                    lanes[begun],
                    ReplySlot(begun, outcomes, ended, 0 if each else len(children)),
                    begun,
                )
                begun += 1
            await ended.wait()
            ended.clear()
            if self.on_error == "cancel" and cause is None:
                cause = next(
                    (outcome for outcome in outcomes.values() if outcome.kind == "failed"), None
                )
                if cause is not None:
                    to_begin = 0
                    await runtime.cancel_children()
        return [outcomes[index] for index in sorted(outcomes)], cause


class ReplySlot:
    """Receives one child's outcome, like a future.

    The outcome is recorded in the same turn of the event loop in which the child ends.
    """

    __slots__ = ("_ended", "_index", "_outcomes", "_quorum")

    def __init__(
        self, index: int, outcomes: dict[int, Outcome], ended: asyncio.Event, quorum: int
    ) -> None:
        self._index = index
        self._outcomes = outcomes
        self._ended = ended
        self._quorum = quorum  # outcomes needed before the parent wakes up

    def done(self) -> bool:
        return self._index in self._outcomes

    def set_result(self, outcome: Outcome) -> None:
        self._outcomes[self._index] = outcome
        if len(self._outcomes) >= self._quorum:
            self._ended.set()

    def cancel(self) -> None:
        """Do nothing: the parent no longer waits, because the whole workflow is being cancelled."""
