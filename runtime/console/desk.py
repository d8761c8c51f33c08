"""The console of one Runner: all that its routes need.

Owns: these parts, and which Runner a run is looked at with: that of the console, if the run is of its agent, and else one that only looks. It must never keep
a run.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Final

from ..agent.tree import Definition, build_tree
from ..data.run_info import RunInfo
from ..durability.store_access import StoreAccess
from ..errors import UsageError
from ..observe.event_json import Json
from ..observe.graph import graph
from ..runner import Runner
from .answer_log import AnswerLog
from .begun_runs import BegunRuns
from .event_feed import Feeds
from .kept_steps import KeptSteps
from .look_only import LookOnly
from .now import Now
from .run_list import RunList

if TYPE_CHECKING:
    from ..system.system import ActorSystem

__all__ = ["Desk"]

_MOST_LOOKING: Final = 64
LABEL: Final = "understudy.console"
"""The label of runs that were begun by the page Try."""


class Desk:
    """What the routes of one console share."""

    def __init__(self, runner: Runner) -> None:
        self.runner = runner
        access = None if runner.store is None else StoreAccess(runner.store)
        self._access = access
        self.list = RunList(access)
        self.now = Now(self.list, self.system)
        self.feeds = Feeds()
        self.begun = BegunRuns()
        self._tree = build_tree(runner.agent)
        self._looking: OrderedDict[str, Runner] = OrderedDict()
        self._agents: dict[str, Json] | None = None

    def system(self) -> ActorSystem:
        """The system that is looked at: that in which a run would live which was begun here."""
        return self.runner.choose_system()

    @property
    def has_definition(self) -> bool:
        """Whether there is an agent, and not only a store."""
        return not isinstance(self.runner.agent, LookOnly)

    @property
    def keeps_runs(self) -> bool:
        """Whether what is begun here is in the store."""
        return self._access is not None and self._access.is_fenced and self.runner.durability != "none"

    def steps_of(self, info: RunInfo) -> KeptSteps:
        return KeptSteps(self.list.access(), info)

    def answer_log(self) -> AnswerLog:
        return AnswerLog(self.list.access())

    def looking_at(self, info: RunInfo) -> Runner:
        """The Runner by which a run of any agent is looked at, cancelled, forgotten."""
        name = info.agent
        if name == self._tree.name:
            return self.runner
        found = self._looking.get(name)
        if found is None:
            found = Runner(LookOnly(name), system=self.runner.system, store=self.runner.store, durability=self.runner.durability)
            self._looking[name] = found
            if len(self._looking) > _MOST_LOOKING:
                self._looking.popitem(last=False)
        self._looking.move_to_end(name)
        return found

    def playing(self, info: RunInfo | None = None) -> Runner:
        """The Runner by which a run goes on, which takes its definition. Raises, if there is none, or it is another agent's."""
        agent = self.runner.agent
        if isinstance(agent, LookOnly):
            raise (agent if info is None else LookOnly(info.agent)).refusal()
        if info is not None and info.agent != self._tree.name:
            msg = f"run {info.id!r:.200} is of the agent {info.agent!r:.200}, and this console has {self._tree.name!r}: it can only look at that run."
            raise UsageError(msg, run=info.id, agent=info.agent)
        return self.runner

    def can_play(self, info: RunInfo) -> bool:
        """Whether a run can go on from here."""
        return self.has_definition and info.agent == self._tree.name

    def agents(self) -> dict[str, Json]:
        """The agents of the definition, and what may be done with them here."""
        if self._agents is None:
            self._agents = self._read_agents()
        return self._agents

    def _read_agents(self) -> dict[str, Json]:
        if not self.has_definition:
            return {"agent": None, "shapes": [], "edges": [], "instructions": {}, "keeps_runs": False}
        picture = graph(self.runner)
        instructions: dict[str, Json] = {}
        for node in (node for tree in self._tree.trees() for node in tree.walk()):
            instruction = _instruction(node.agent)
            if instruction is not None:
                instructions[node.name] = instruction
        shapes: list[Json] = [
            {
                "id": shape.id,
                "name": shape.name,
                "type": shape.type,
                "description": shape.description[:500],
                "above": shape.inside or shape.under,
                "tools": [{"name": tool.name, "needs_approval": tool.needs_approval} for tool in shape.tools],
                "guardrails": list(shape.guardrails),
                "is_workflow": shape.is_workflow,
            }
            for shape in picture.shapes
        ]
        edges: list[Json] = [{"source": edge.source, "target": edge.target, "kind": edge.kind, "label": edge.label} for edge in picture.edges]
        return {"agent": self._tree.name, "shapes": shapes, "edges": edges, "instructions": instructions, "keeps_runs": self.keeps_runs}

    async def aclose(self) -> None:
        """End all streams, and leave what was begun."""
        self.feeds.close()
        await self.begun.aclose()


def _instruction(agent: Definition) -> str | None:
    """What a run may be given in its place; None, where there is none. One that is a function is not shown: it may be replaced all the same."""
    if not hasattr(agent, "make_model_input"):
        return None
    instruction = getattr(agent, "instruction", None)
    return instruction if isinstance(instruction, str) else "" if callable(instruction) else None
