"""Running an agent by the names of the Agents SDK.

Owns: `Runner.run`, its variants and their parameters. It must never run anything itself: that is for `understudy.runtime.Runner`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Unpack, cast

from ...runtime.data.chat import Message, Role
from ...runtime.data.run_result import RunResult
from ...runtime.run.run import Run
from ...runtime.runner import Runner as _Runner
from ..agent import Agent
from .options import InputItem, RunCallOptions, RunnerOptions, RunOptions

__all__ = ["Runner", "run"]

_ROLES: Final = ("system", "developer", "user", "assistant")


class Runner:
    """Runs an agent, by the SDK's names. understudy's own `Runner` does more: it keeps runs, resumes them, and knows sessions."""

    @classmethod
    async def run(
        cls,
        starting_agent: Agent,
        input: str | Sequence[InputItem],  # noqa: A002 -- the SDK's
        *,
        context: object = None,
        **options: Unpack[RunOptions],
    ) -> RunResult:
        """Run to the end. Raises the error that the run failed with."""
        result = await cls._start(starting_agent, input, context, options)
        result.raise_for_error()
        return result

    @classmethod
    def run_sync(
        cls,
        starting_agent: Agent,
        input: str | Sequence[InputItem],  # noqa: A002 -- the SDK's
        *,
        context: object = None,
        **options: Unpack[RunOptions],
    ) -> RunResult:
        """The same as `run`, where no event loop is running."""
        result = cls._start(starting_agent, input, context, options).result()
        result.raise_for_error()
        return result

    @classmethod
    def run_streamed(
        cls,
        starting_agent: Agent,
        input: str | Sequence[InputItem],  # noqa: A002 -- the SDK's
        *,
        context: object = None,
        **options: Unpack[RunOptions],
    ) -> Run:
        """The run itself: iterate over its events."""
        return cls._start(starting_agent, input, context, {"streaming": True, **options})

    @staticmethod
    def _start(agent: Agent, messages: str | Sequence[InputItem], context: object, options: RunOptions) -> Run:
        own = {name: value for name, value in options.items() if name in RunnerOptions.__optional_keys__}
        rest = {name: value for name, value in options.items() if name not in own}
        runner = _Runner(agent, **cast("RunnerOptions", own))
        return runner.run(_as_messages(messages), context=context, **cast("RunCallOptions", rest))


async def run(agent: Agent, text: str, *, context: object = None, **options: Unpack[RunOptions]) -> RunResult:
    """Run an agent to the end, as `Runner.run` does."""
    return await Runner.run(agent, text, context=context, **options)


def _as_messages(items: str | Sequence[InputItem]) -> str | Message | Sequence[Message]:
    """The items as messages. understudy's `Runner` refuses those that are none."""
    if isinstance(items, str | Message):
        return items
    return [cast("Message", _as_message(item)) for item in items]


def _as_message(item: InputItem) -> InputItem:
    """The message of a dict with a role and a text; any other item as it is."""
    if isinstance(item, dict):
        role, content = item.get("role"), item.get("content")
        if isinstance(content, str) and role in _ROLES:
            return Message(cast("Role", "system" if role == "developer" else role), content)
    return item
