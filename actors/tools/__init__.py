"""A function as a tool.

Owns what a model is told of a function, the checking of what it sends, and the context that a call is given. Its files, each importing only from
those above it:

    signature       what can be read off a function without pydantic
    docstrings      descriptions of parameters, from the docstring
    strict_schema   a JSON schema in the form that models want
    function_schema arguments: their schema, and the validation of a call
    attempt         whether something still waits for one attempt at a call
    call_door       one call of a tool, from the side of the agent that makes it
    tool_context    what a tool is given
    tool_guardrail  what checks a call, or its result, and may refuse
    tool            what an agent can call; a plain def in a worker thread, from `runtime/system/`
    toolset         tools that are known only when an agent plays
    tool_result     what the model is told of a result
    approval        calls that need an approval first
    standalone      a context for a tool that is called by a test

It must never decide which tools are called, or in which order: that is `chat_agent/`.
"""

from ...runtime.testing.tool_contexts import provide_tool_contexts as _provide


def _tool_context(**given: object) -> object:
    from .standalone import tool_context  # noqa: PLC0415 -- for tests only

    return tool_context(**given)  # type: ignore[arg-type]  # what `runtime.testing.tool_context` was given


_provide(_tool_context)
