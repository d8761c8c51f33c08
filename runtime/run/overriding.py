"""The part of a `Runner` that replaces models and tools for a test.

Only runs that start within the override are affected.
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
    """The override method of a `Runner`."""

    _factory: RunFactory

    def override(
        self,
        *,
        model: ChatModel | str | Mapping[str, ChatModel | str] | None = None,
        tools: Mapping[str, Callable[..., object]] | None = None,
    ) -> AbstractContextManager[None]:
        """Replace models and tools in a test.

            with runner.override(model=ScriptedModel([...]), tools={"charge": fake_charge}): ...

        `model` applies to every agent of the tree, or maps agents' names to models. `tools`
        replaces each tool of that name with a function or a `Tool`, whichever agent has it. The
        override applies to runs of this Runner that start or resume in the block, or in tasks
        created there, including their sub-agents, handoffs and agents used as tools. Other tasks,
        threads and Runners are not affected. Nested blocks add to the outer one.
        """
        return override_of(self._factory, self._factory.tree, model, tools)
