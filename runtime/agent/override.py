"""The models and tools that a test replaces for the runs that start in a `with` block.

Replacements are checked against the agents. Definitions stay unchanged: each affected run gets
copies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final

from ..errors import UsageError

if TYPE_CHECKING:
    from ..models import ChatModel
    from .tree import Node

__all__ = ["Override", "current_override", "override_of"]

_open: Final[ContextVar[tuple[tuple[object, Override], ...]]] = ContextVar(
    "offbook_overrides", default=()
)


class Override:
    """The replacements of one block, including those of the enclosing blocks."""

    __slots__ = ("made", "models", "tools")

    def __init__(
        self,
        models: Mapping[str | None, ChatModel | str],
        tools: Mapping[str, Callable[..., object]],
    ) -> None:
        self.models = models
        """By agent name; None for all other agents."""
        self.tools = tools
        self.made: dict[int, Any] = {}  # cached results of agents for a node, by the node's id

    def model_of(self, agent_name: str) -> ChatModel | str | None:
        """Return the model that replaces this agent's, if there is one."""
        return self.models.get(agent_name, self.models.get(None))


def current_override(owner: object) -> Override | None:
    """Return the override that applies here to the runs of that Runner."""
    is_open = _open.get()
    return (
        next((override for of, override in reversed(is_open) if of is owner), None)
        if is_open
        else None
    )


@contextmanager
def override_of(
    owner: object, tree: Node, model: object, tools: Mapping[str, Callable[..., object]] | None
) -> Iterator[None]:
    """Replace models and tools for that Runner, in this context, until the block ends."""
    agents, known = _known(tree)
    models = _models(model, agents)
    given = _tools(tools, known)
    outer = current_override(owner)
    if outer is not None:
        models = {**(outer.models if None not in models else {}), **models}
        given = {**outer.tools, **given}
    token = _open.set((*_open.get(), (owner, Override(models, given))))
    try:
        yield
    finally:
        _open.reset(token)


def _models(model: object, agents: set[str]) -> dict[str | None, ChatModel | str]:
    if model is None:
        return {}
    named: Mapping[Any, Any] = model if isinstance(model, Mapping) else {None: model}
    for name, one in named.items():
        if name is not None and name not in agents:
            msg = (
                f"override(model=...): unknown agent {name!r}. Agents: {', '.join(sorted(agents))}."
            )
            raise UsageError(msg)
        if isinstance(one, type) or not (
            isinstance(one, str) or callable(getattr(one, "generate", None))
        ):
            msg = (
                "override: model must be a ChatModel, such as ScriptedModel([...]), or a "
                f"mapping from agents' names to models, got {one!r:.80}."
            )
            raise UsageError(msg)
    return dict(named)


def _tools(tools: object, known: set[str] | None) -> dict[str, Callable[..., object]]:
    if tools is None:
        return {}
    if not isinstance(tools, Mapping):
        msg = (
            "override: tools must be a mapping of names of tools to what replaces them, "
            f"such as {{'get_weather': fake_weather}}, got {tools!r:.80}."
        )
        raise UsageError(msg)
    for name, one in tools.items():
        if known is not None and name not in known:
            msg = (
                f"override(tools=...): no agent has a tool {name!r}. Tools: "
                f"{', '.join(sorted(known)) or 'none'}."
            )
            raise UsageError(msg)
        own = getattr(one, "name", None) if hasattr(one, "spec") else name
        if not (callable(one) or hasattr(one, "spec")) or own != name:
            what = (
                f"a tool of another name, {own!r}"
                if own != name
                else f"{one!r:.80}, which cannot be called"
            )
            msg = (
                f"override: the replacement of tool {name!r} must be a function, or a Tool "
                f"of the same name, got {what}."
            )
            raise UsageError(msg)
    return dict(tools)


def _known(tree: Node) -> tuple[set[str], set[str] | None]:
    """Return the names of all agents, including those called as tools, and of all tools.

    The tools are None if some are known only when an agent runs.
    """
    agents: set[str] = set()
    tools: set[str] = set()
    are_all = True
    seen: set[int] = set()
    trees = [tree]
    for one in trees:  # grows in the loop
        if id(one) in seen:
            continue
        seen.add(id(one))
        for node in (node for root in one.trees() for node in root.walk()):
            agents.add(node.name)
            are_all = are_all and not getattr(node.agent, "toolsets", ())
            tools_at: Callable[[Node], Mapping[str, Node | None]] = getattr(
                node.agent, "tools_at", _none
            )
            for name, called in tools_at(node).items():
                tools.add(name)
                if called is not None:
                    trees.append(called)
    return agents, tools if are_all else None


def _none(_node: Node) -> Mapping[str, Node | None]:
    return {}
