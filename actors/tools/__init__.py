"""A function as a tool: its description for the model, its arguments and the context of a call.

Each module imports only from those listed above it:

    signature         facts that can be read off a function and its docstring without pydantic
    strict_schema     a JSON schema in strict form
    function_schema   arguments: their schema, and the validation of a call
    attempt           whether anything still waits for one attempt at a call
    call_key          the idempotency key of a call
    tool_call_state         one call of a tool, from the side of the agent that makes it
    tool_context      the context that a tool receives
    tool_guardrail    checks of a call or its result, which may refuse
    tool              the tools of an agent; a plain def in a worker thread, from `runtime/system/`
    tool_result       the content of a tool's message
    approval          calls that need an approval first
    standalone        a context for a tool that is called by a test

The choice and the order of the calls are made in `chat_agent/`.
"""

from ...runtime.testing.tool_contexts import provide_tool_contexts as _provide


def _tool_context(**given: object) -> object:
    from .standalone import tool_context  # noqa: PLC0415 -- for tests only

    return tool_context(**given)  # type: ignore[arg-type]  # checked by the caller


_provide(_tool_context)
