"""The console of one Runner: the shared state of its routes.

A run of the console's own agent is inspected with its Runner, other runs with one that only
inspects.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Final

from ..agent.hooks import add_global_hooks
from ..agent.tree import Definition, build_tree
from ..data.run_info import RunInfo
from ..durability.store_access import StoreAccess
from ..durability.store_keys import session_key
from ..errors import UsageError
from ..observe.event_json import Json
from ..observe.graph import graph
from ..runner import Runner
from ..sessions.session_log import SessionLog
from .answer_log import AnswerLog
from .begun_runs import BegunRuns
from .event_feed import Feeds
from .kept_steps import KeptSteps
from .look_only import LookOnly
from .model_calls import ModelCalls
from .now import Now
from .run_list import RunList

if TYPE_CHECKING:
    from ..system.system import ActorSystem

__all__ = ["Desk"]

_MOST_LOOKING: Final = 64
LABEL: Final = "offbook.console"
"""The label of runs started on the page Try."""


class Desk:
    """The shared state of one console's routes."""

    def __init__(self, runner: Runner, *, capture_content: bool = False) -> None:
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
        self.calls = ModelCalls() if capture_content else None
        self._forget_calls = None if self.calls is None else add_global_hooks(self.calls)

    def system(self) -> ActorSystem:
        """Return the system that the console shows, in which runs started here would live."""
        return self.runner.choose_system()

    @property
    def has_definition(self) -> bool:
        """True if there is an agent, and not only a store."""
        return not isinstance(self.runner.agent, LookOnly)

    @property
    def keeps_runs(self) -> bool:
        """True if runs that are started here are stored."""
        return (
            self._access is not None and self._access.is_fenced and self.runner.durability != "none"
        )

    def steps_of(self, info: RunInfo) -> KeptSteps:
        return KeptSteps(self.list.access(), info)

    def answer_log(self) -> AnswerLog:
        return AnswerLog(self.list.access())

    async def session_log(self, session_id: str) -> SessionLog:
        """Load a session with the agent of each of its messages.

        Raises if the id is invalid, or there is no store.
        """
        self.runner.session(session_id)
        assert self._access is not None
        return SessionLog(session_id, await self._access.read(session_key(session_id)))

    def looking_at(self, info: RunInfo) -> Runner:
        """Return the Runner to inspect, cancel or forget a run of any agent."""
        name = info.agent
        if name == self._tree.name:
            return self.runner
        found = self._looking.get(name)
        if found is None:
            found = Runner(
                LookOnly(name),
                system=self.runner.system,
                store=self.runner.store,
                durability=self.runner.durability,
            )
            self._looking[name] = found
            if len(self._looking) > _MOST_LOOKING:
                self._looking.popitem(last=False)
        self._looking.move_to_end(name)
        return found

    def playing(self, info: RunInfo | None = None) -> Runner:
        """Return the Runner to continue a run, which needs its definition.

        Raises if there is none, or the run belongs to another agent.
        """
        agent = self.runner.agent
        if isinstance(agent, LookOnly):
            raise (agent if info is None else LookOnly(info.agent)).refusal()
        if info is not None and info.agent != self._tree.name:
            msg = (
                f"run {info.id!r:.200} belongs to the agent {info.agent!r:.200}, and this "
                f"console has {self._tree.name!r}, so it can only show the run. Start a console "
                "with that agent to change it."
            )
            raise UsageError(msg, run=info.id, agent=info.agent)
        return self.runner

    def can_play(self, info: RunInfo) -> bool:
        """Return whether a run can continue from here."""
        return self.has_definition and info.agent == self._tree.name

    def agents(self) -> dict[str, Json]:
        """Return the agents of the definition, and the permitted actions."""
        if self._agents is None:
            self._agents = self._read_agents()
        return self._agents

    def _read_agents(self) -> dict[str, Json]:
        if not self.has_definition:
            return {
                "agent": None,
                "shapes": [],
                "edges": [],
                "instructions": {},
                "keeps_runs": False,
            }
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
                "tools": [
                    {"name": tool.name, "needs_approval": tool.needs_approval}
                    for tool in shape.tools
                ],
                "guardrails": list(shape.guardrails),
                "is_workflow": shape.is_workflow,
            }
            for shape in picture.shapes
        ]
        edges: list[Json] = [
            {"source": edge.source, "target": edge.target, "kind": edge.kind, "label": edge.label}
            for edge in picture.edges
        ]
        return {
            "agent": self._tree.name,
            "shapes": shapes,
            "edges": edges,
            "instructions": instructions,
            "keeps_runs": self.keeps_runs,
        }

    async def aclose(self) -> None:
        """End all streams, and stop following the runs that were started here."""
        self.feeds.close()
        if self._forget_calls is not None:
            self._forget_calls()
        await self.begun.aclose()


def _instruction(agent: Definition) -> str | None:
    """Return the instruction that a run may override; None if the agent has none.

    A function is not shown, but can also be overridden.
    """
    if not hasattr(agent, "make_model_input"):
        return None
    instruction = getattr(agent, "instruction", None)
    return instruction if isinstance(instruction, str) else "" if callable(instruction) else None
