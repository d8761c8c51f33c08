"""Fixtures for pytest: `scripted`, `memory_runner` and `manual_clock`.

Pytest finds them by itself where this package is installed. They do not affect tests that use none
of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from ..agent.tree import Definition
    from ..models import ScriptedModel
    from ..models.scripted import Line
    from ..runner import Runner
    from .manual_clock import ManualClock

__all__ = ["manual_clock", "memory_runner", "scripted"]


@pytest.fixture
def scripted() -> Iterator[Callable[..., ScriptedModel]]:
    """Makes models that return canned replies: `scripted("a", "b")`.

    A line that no call has used fails the test.
    """
    from ..models import ScriptedModel  # noqa: PLC0415 -- for the tests that ask for it

    models: list[ScriptedModel] = []

    def make(*lines: Line, delay: float = 0.0) -> ScriptedModel:
        models.append(ScriptedModel(lines, delay=delay))
        return models[-1]

    yield make
    for model in models:
        model.assert_done()


@pytest.fixture
def memory_runner() -> Callable[[Definition], Runner]:
    """Makes Runners that record each step in memory: `memory_runner(agent).query("...")`."""
    from ..runner import Runner  # noqa: PLC0415
    from ..stores import MemoryStore  # noqa: PLC0415

    def make(agent: Definition, *, streaming: bool = False) -> Runner:
        return Runner(agent, store=MemoryStore(), durability="step", streaming=streaming)

    return make


@pytest.fixture
def manual_clock() -> ManualClock:
    """A clock that the test advances: `ActorSystem(clock=manual_clock)`."""
    from .manual_clock import ManualClock  # noqa: PLC0415

    return ManualClock()
