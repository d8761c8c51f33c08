"""A context for a tool that a test calls.

`offbook.actors` registers the function that makes it, because only that package knows tools, and
this one must not import it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..errors import UsageError
from ..option_names import suggests_option

__all__ = ["provide_tool_contexts", "tool_context"]

_makers: list[Callable[..., Any]] = []


def provide_tool_contexts(maker: Callable[..., Any]) -> None:
    """Register the function that makes contexts. Called by `offbook.actors` when it is imported."""
    _makers[:] = [maker]


@suggests_option("tool_context")
def tool_context(
    *,
    tool_name: str = "tool",
    call_id: str = "call_1",
    agent_name: str = "agent",
    arguments: str = "{}",
    session_values: Mapping[str, object] | None = None,
    options: Mapping[str, object] | None = None,
    answers: Sequence[object] = (),
    context: object = None,
) -> Any:
    """Return a `ToolContext` for the unit test of a tool: `assert book("Chez Paul",
    context=tool_context()) == ...`.

    `answers` are returned by its calls of `interrupt()`, one after the other; a call without an
    answer raises `ToolInterrupted`, as in a run. The tool's output is in `emitted`, `action` and
    `asked`.
    """
    if not _makers:
        msg = (
            "tool_context(): `offbook.actors`, which has the tools, has not been imported. Write "
            "`import offbook.actors`."
        )
        raise UsageError(msg)
    return _makers[0](
        tool_name=tool_name,
        call_id=call_id,
        agent_name=agent_name,
        arguments=arguments,
        session_values=session_values,
        options=options,
        answers=answers,
        context=context,
    )
