"""The model of each example: the model that the environment names, or a scripted one with the
replies in the example.

To use a real model, set OPENAI_API_KEY and OPENAI_MODEL (and OPENAI_BASE_URL for another provider),
in the environment or in a file `.env`.
"""

import sys
from collections.abc import Callable
from functools import cache

from offbook import ChatModel, ModelRequest, ScriptedModel, ToolCalls, UsageError, model_from_env


def model(*replies: str | ToolCalls | Callable[[ModelRequest], str | ToolCalls]) -> ChatModel:
    """The model of the environment, or one that gives these replies, one after the other."""
    return real_model() or ScriptedModel(replies)


@cache
def real_model() -> ChatModel | None:
    """One for all agents of the program; the environment is read once."""
    try:
        return model_from_env()
    except UsageError as reason:
        print(f"(The replies are scripted. {reason})\n", file=sys.stderr)
        return None
