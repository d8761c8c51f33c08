"""The part of a `Runner` that is for tests: models and tools that are replaced for a while.

Owns: the method. It must never change what runs have that begin elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from ..agent.override import override_of
from .run_factory import RunFactory

if TYPE_CHECKING:
    from ..models import ChatModel

__all__ = ["Overriding"]


class Overriding:
    """A Runner's agents with other models and tools."""

    _factory: RunFactory

    def override(
        self, *, model: ChatModel | str | Mapping[str, ChatModel | str] | None = None, tools: Mapping[str, Callable[..., object]] | None = None
    ) -> AbstractContextManager[None]:
        """Other models and tools, in a test: `with runner.override(model=ScriptedModel([...]), tools={"charge": fake_charge}):`.

        `model` is for every agent of the tree, or a mapping of agents' names to models; `tools` replaces each tool of that name by a function or a `Tool`, in
        whichever agent it is. That holds for the runs of this Runner which begin, or are resumed, in the block and in the tasks that are begun there: with
        all their sub-agents, handoffs and agents that are tools. Other tasks, threads and Runners have what they had; blocks within a block add to it.
        """
        return override_of(self._factory, self._factory.tree, model, tools)
