"""The agents of a run, by names that tell them apart.

Owns: which agents a run can reach from its first one, and their names: the second agent of a name is `name#2`. It must never change an agent.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any

__all__ = ["AgentNames", "reachable_agents"]


def reachable_agents(first: Any) -> Iterator[Any]:
    """The agents that can come to play: by handoffs, or called as tools."""
    queue, seen = deque([first]), set()
    while queue:
        agent = queue.popleft()
        if id(agent) in seen:
            continue
        seen.add(id(agent))
        yield agent
        for one in getattr(agent, "handoffs", ()):
            target = getattr(one, "agent", None) or (one if hasattr(one, "handoffs") else None)
            if target is not None and hasattr(target, "handoffs"):
                queue.append(target)
        queue.extend(found for tool in getattr(agent, "tools", ()) if (found := getattr(tool, "of_agent", None)) is not None)


class AgentNames:
    """Each agent's own name, and the way back."""

    def __init__(self, first: Any) -> None:
        agents = list(reachable_agents(first))
        literal = {agent.name for agent in agents}
        self.by_name: dict[str, Any] = {}
        self._names: dict[int, str] = {}
        for agent in agents:
            name, number = agent.name, 1
            while name in self.by_name or (number > 1 and name in literal):
                number += 1
                name = f"{agent.name}#{number}"
            self.by_name[name] = agent
            self._names[id(agent)] = name

    def name_of(self, agent: Any) -> str:
        """The name that is this agent's alone."""
        return str(self._names.get(id(agent), agent.name))

    def reference(self, agent: Any) -> dict[str, str] | None:
        """An agent, as JSON names it."""
        if agent is None:
            return None
        name = self.name_of(agent)
        return {"name": agent.name} if name == agent.name else {"name": agent.name, "identity": name}

    def named(self, data: Any) -> Any:
        """The agent that JSON names; None if there is none."""
        if isinstance(data, str):
            return self.by_name.get(data)
        if not isinstance(data, dict):
            return None
        return self.by_name.get(data.get("identity") or data.get("name", "")) or self.by_name.get(data.get("name", ""))
