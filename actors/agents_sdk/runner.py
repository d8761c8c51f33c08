"""Running an agent by the names of the Agents SDK.

Owns: `Runner.run` and its like. How runs are run is `understudy.runtime`'s.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from ...runtime.data.chat import Message, Role
from ...runtime.data.run_result import RunResult
from ...runtime.run.run import Run
from ...runtime.runner import Runner as _Runner

__all__ = ["Runner", "run"]


class Runner:
    """Runs an agent, by the SDK's names. A Runner of understudy's does more: it keeps runs, resumes them, and knows sessions."""

    @classmethod
    async def run(cls, starting_agent: Any, input: str | Sequence[Any], *, context: Any = None, **options: Any) -> RunResult:  # noqa: A002 -- the SDK's
        """Run to the end. Raises what it failed with."""
        result = await cls._start(starting_agent, input, context, options)
        result.raise_for_error()
        return result

    @classmethod
    def run_sync(cls, starting_agent: Any, input: str | Sequence[Any], *, context: Any = None, **options: Any) -> RunResult:  # noqa: A002 -- the SDK's
        """The same, where no event loop is running."""
        result = cls._start(starting_agent, input, context, options).result()
        result.raise_for_error()
        return result

    @classmethod
    def run_streamed(cls, starting_agent: Any, input: str | Sequence[Any], *, context: Any = None, **options: Any) -> Run:  # noqa: A002 -- the SDK's
        """The run itself: iterate over its events."""
        return cls._start(starting_agent, input, context, {"streaming": True, **options})

    @staticmethod
    def _start(agent: Any, given: Any, context: Any, options: dict[str, Any]) -> Run:
        own = {name: options.pop(name) for name in ("hooks", "handoff_input_filter", "store", "system", "max_transfers", "durability") if name in options}
        return _Runner(agent, **own).run(_as_messages(given), context=context, **options)


async def run(agent: Any, text: str, **options: Any) -> RunResult:
    """Run an agent to the end, as `Runner.run` does."""
    return await Runner.run(agent, text, **options)


def _as_messages(given: Any) -> Any:
    """Messages, of which some may be dicts with a role and a content."""
    if isinstance(given, str | Message):
        return given
    messages = []
    for one in given:
        if isinstance(one, dict) and isinstance(one.get("content"), str) and one.get("role") in ("system", "developer", "user", "assistant"):
            role = "system" if one["role"] == "developer" else one["role"]
            messages.append(Message(cast("Role", role), one["content"]))
        else:
            messages.append(one)
    return messages
