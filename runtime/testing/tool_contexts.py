"""A context for a tool that is called by a test.

Owns: the door by which `understudy.actors` brings the context here, for what a tool is only that package knows. It must never import it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..errors import UsageError
from ..option_names import suggests_option

__all__ = ["provide_tool_contexts", "tool_context"]

_makers: list[Callable[..., Any]] = []


def provide_tool_contexts(maker: Callable[..., Any]) -> None:
    """Called by `understudy.actors`, when it is imported: that is what `tool_context` is made by."""
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
    """A `ToolContext` for the unit test of a tool: `assert book("Chez Paul", context=tool_context()) == ...`.

    `answers` is what its calls of `interrupt()` return, one after the other; one for which there is none raises `ToolInterrupted`, as in a run. What the tool
    has emitted, sent and asked for is in `emitted`, `action` and `asked`.
    """
    if not _makers:
        msg = "tool_context(): a tool belongs to `understudy.actors`, which has not been imported: `import understudy.actors`."
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
