"""Workflows: agents that say nothing themselves, and let others play: one after the other, again and again, or all at once.

Owns: in which order children play, and what becomes of the whole when one of them does not simply finish. Where a workflow stands is in its state, so
that it goes on from there.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from itertools import chain, islice, pairwise, repeat
from typing import Any, ClassVar, Literal, Unpack

from ..runtime.agent.context import AgentContext, door_of
from ..runtime.agent.door import AgentDoor
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
        """Say, when a Runner is made, that there is nothing to play."""
        if not node.children:
            loggers.workflow.warning(
                "%s %r has no sub-agents: it ends at once. set_sub_agents(...) gives a copy that has some.", type(self).__name__, self.name
            )


class Sequential(_Workflow):
    """Its children play in order. An error, an exit or an interrupt of one ends it there."""

    interrupt_info: ClassVar[str | None] = "Sequential workflow interrupted"

    def __init__(self, *, name: str, description: str = "", sub_agents: Sequence[Agent], **agent_options: Unpack[AgentOptions]) -> None:
        check_option_names(Sequential, agent_options)
        super().__init__(name=name, description=description, sub_agents=sub_agents, **agent_options)

    async def run(self, input: AgentInput, context: AgentContext) -> AsyncIterator[AgentEvent]:  # noqa: A002 -- the contract's
        state = context.state
        door = door_of(context)
        children = door.node.children
        start: int = state.get("next", 0)
        base = as_path((child.name for child in children[:start]), door.invocation.run_path)
        for index in range(start, len(children)):
            outcome = await door.cast_node(children[index], base, door.invocation.lane, index, one_at_a_time=True)
            if outcome.kind != "finished" or outcome.broke:
                return
            base = extended(base, children[index].name)
            state["next"] = index + 1
        return
        yield


class Loop(_Workflow):
    """Its children play in order, again and again: until one of them breaks the loop or exits, or `max_iterations` times (0: no bound)."""

    interrupt_info: ClassVar[str | None] = "Loop workflow interrupted"

    def __init__(
        self, *, name: str, description: str = "", sub_agents: Sequence[Agent], max_iterations: int = 0, **agent_options: Unpack[AgentOptions]
    ) -> None:
        check_option_names(Loop, agent_options)
        super().__init__(name=name, description=description, sub_agents=sub_agents, **agent_options)
        if max_iterations < 0:
            msg = f"Loop {name!r}: max_iterations={max_iterations}: give the number of rounds, or 0 for no bound."
            raise UsageError(msg, agent=name)
        self.max_iterations = max_iterations

    async def run(self, input: AgentInput, context: AgentContext) -> AsyncIterator[AgentEvent]:  # noqa: A002 -- the contract's
        state = context.state
        door = door_of(context)
        children = door.node.children
        base = _passed(state, [child.name for child in children], door.invocation.run_path)
        iteration: int = state.get("iteration", 0)
        while children and not (self.max_iterations and iteration >= self.max_iterations):
            for index in range(state.get("next", 0), len(children)):
                cast_key = f"{iteration}.{index}"
                outcome = await door.cast_node(children[index], base, door.invocation.lane, cast_key, loop=iteration, one_at_a_time=True)
                if outcome.kind != "finished":
                    return
                if outcome.broke:
                    door.last_cast = Outcome(message=outcome.message)  # it was this loop that was broken
                    return
                base = extended(base, children[index].name)
                state["next"] = index + 1
            iteration += 1
            state["iteration"], state["next"] = iteration, 0
            # Children that never wait for anything must not keep everybody else from their turn.
            await asyncio.sleep(0)
        return
        yield


def _passed(state: dict[str, Any], names: Sequence[str], path: Path) -> Path:
    """The run path behind all that a loop has let play. Of that, it notes no more than from which turn on it had how many children."""
    at = (state.get("iteration", 0), state.get("next", 0))
    spans: list[list[int]] = state.get("spans") or ([[0, 0, state["of"]]] if "of" in state else [[*at, len(names)]])
    if spans[-1][2] != len(names):
        spans = [*spans, [*at, len(names)]]  # children were added
    if len(spans) == 1 and not any(spans[0][:2]):
        state["of"] = len(names)
    else:
        state["spans"] = spans
    path = as_path(state.get("passed", ()), path)  # what an earlier version has noted, name by name
    for (iteration, begun, count), (next_iteration, end, *_) in pairwise([*spans, [*at, 0]]):
        path = as_path(islice(chain(*repeat(names[:count], next_iteration - iteration), names[:end]), begun, None), path)
    return path


class Parallel(_Workflow):
    """All its children play at once, each as an actor of its own, each seeing what was said before and what it says itself.

    `max_concurrency` bounds how many at a time. A child that fails does not touch the others (`on_error="isolate"`), or has them cancelled (`"cancel"`);
    when all have ended, the Parallel has failed with it.
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
            msg = f"Parallel {name!r}: max_concurrency={max_concurrency} would let no agent play; give 1 or more, or None for no bound."
            raise UsageError(msg, agent=name)
        if on_error not in ("isolate", "cancel"):
            msg = f"Parallel {name!r}: on_error={on_error!r} is unknown; give 'isolate' or 'cancel'."
            raise UsageError(msg, agent=name)
        self.max_concurrency = max_concurrency
        self.on_error = on_error

    async def run(self, input: AgentInput, context: AgentContext) -> AsyncIterator[AgentEvent]:  # noqa: A002 -- the contract's
        door = door_of(context)
        children = door.node.children
        outcomes, cause = await self._play(door, children, door.lanes(len(children)))
        whole = cause or joined(outcomes)
        if whole.kind == "interrupted":
            yield AgentEvent.of(action=Interrupted(whole.contexts))
            return
        if not context.state.get("joined"):
            await door.join()
            context.state["joined"] = True
        door.last_cast = whole

    async def _play(self, door: AgentDoor, children: tuple[Node, ...], lanes: list[Lane]) -> tuple[list[Outcome], Outcome | None]:
        """Let all of them play. Returns how each has ended that was begun, and the failure for which the others were cancelled."""
        most = self.max_concurrency or len(children)
        outcomes: dict[int, Outcome] = {}
        ended = asyncio.Event()
        begun = 0
        to_begin = len(children)
        cause: Outcome | None = None
        # Whether it has to look after each of them, or only after the last one.
        each = self.on_error == "cancel" or most < len(children)
        while begun < to_begin or len(outcomes) < begun:
            while begun < to_begin and begun - len(outcomes) < most:
                await door.begin_cast(
                    children[begun], door.invocation.run_path, lanes[begun], ReplySlot(begun, outcomes, ended, 0 if each else len(children)), begun
                )
                begun += 1
            await ended.wait()
            ended.clear()
            if self.on_error == "cancel" and cause is None:
                cause = next((outcome for outcome in outcomes.values() if outcome.kind == "failed"), None)
                if cause is not None:
                    to_begin = 0
                    await door.cancel_children()
        return [outcomes[index] for index in sorted(outcomes)], cause


class ReplySlot:
    """Where the outcome of one child goes: as good as a future, and no turn of the loop lies between the end of a child and its being noted."""

    __slots__ = ("_ended", "_index", "_outcomes", "_quorum")

    def __init__(self, index: int, outcomes: dict[int, Outcome], ended: asyncio.Event, quorum: int) -> None:
        self._index = index
        self._outcomes = outcomes
        self._ended = ended
        self._quorum = quorum  # how many have to have ended before the parent needs to look

    def done(self) -> bool:
        return self._index in self._outcomes

    def set_result(self, outcome: Outcome) -> None:
        self._outcomes[self._index] = outcome
        if len(self._outcomes) >= self._quorum:
            self._ended.set()

    def cancel(self) -> None:
        """The parent waits no more: the whole is being cancelled."""
