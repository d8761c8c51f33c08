"""The schema of a function, the joining of a message's deltas, and the output of `debug=True`.

All have Swarm's own form. A schema contains no more than Swarm's does, and is not strict.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from .types import AgentFunction

__all__ = ["debug_print", "function_to_json", "merge_chunk", "merge_fields"]

_TYPES: Final[Mapping[object, str]] = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    list: "array",
    dict: "object",
    type(None): "null",
}


def debug_print(debug: bool, *args: object) -> None:  # noqa: FBT001 -- Swarm's signature
    """Print the arguments in grey, with the time, if `debug` is true."""
    if debug:
        now = datetime.now().strftime("%Y-%m-%d %H:%M:%S")  # noqa: DTZ005 -- the local time, for the user
        print(f"\033[97m[\033[90m{now}\033[97m]\033[90m {' '.join(map(str, args))}\033[0m")  # noqa: T201 -- printing is its purpose


def merge_fields(target: dict[str, Any], source: Mapping[str, object]) -> None:
    """Append the strings of `source` to those of `target`, at any depth.

    Values that are neither string nor mapping are ignored.
    """
    for key, value in source.items():
        if isinstance(value, str):
            target[key] = (target.get(key) or "") + value
        elif isinstance(value, dict):
            if target.get(key) is None:
                target[key] = {}
            merge_fields(target[key], value)


def merge_chunk(final_response: dict[str, Any], delta: Mapping[str, Any]) -> None:
    """Append a delta of a streamed message to the earlier ones.

    Calls of functions are identified by their index.
    """
    merge_fields(final_response, {key: value for key, value in delta.items() if key != "role"})
    for call in delta.get("tool_calls") or ():
        merge_fields(
            final_response["tool_calls"][call["index"]],
            {key: value for key, value in call.items() if key != "index"},
        )


def function_to_json(func: AgentFunction) -> dict[str, Any]:
    """Return the description of a function for a model: its name, docstring and parameters.

    The type of a parameter is "string", unless its annotation maps to another.
    """
    try:
        parameters = inspect.signature(func).parameters.values()
    except ValueError as error:
        msg = f"Failed to get signature for function {func.__name__}: {error}"
        raise ValueError(msg) from error
    return {
        "type": "function",
        "function": {
            "name": func.__name__,
            "description": func.__doc__ or "",
            "parameters": {
                "type": "object",
                "properties": {
                    parameter.name: {"type": _type_of(parameter.annotation)}
                    for parameter in parameters
                },
                "required": [
                    parameter.name
                    for parameter in parameters
                    if parameter.default is inspect.Parameter.empty
                ],
            },
        },
    }


def _type_of(annotation: object) -> str:
    try:
        return _TYPES.get(annotation, "string")
    except TypeError:  # an unhashable annotation
        return "string"
