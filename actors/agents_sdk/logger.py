"""Where the SDK's messages go.

Owns: the logger, under the name that programs of the SDK configure. It must never be given what a tool or a model has said, unless the program asks for it.
"""

import logging
import os

__all__ = ["enable_verbose_stdout_logging", "hides_model_data", "hides_tool_data", "logger"]

logger = logging.getLogger("openai.agents")


def hides_model_data() -> bool:
    """Whether what goes to models and comes from them stays out of logs and errors."""
    return _is_set("OPENAI_AGENTS_DONT_LOG_MODEL_DATA")


def hides_tool_data() -> bool:
    """Whether what goes to tools and comes from them stays out of logs and errors."""
    return _is_set("OPENAI_AGENTS_DONT_LOG_TOOL_DATA")


def _is_set(name: str) -> bool:
    return os.environ.get(name, "1").lower() in ("1", "true")


def enable_verbose_stdout_logging() -> None:
    """Show all messages on standard output."""
    import sys  # noqa: PLC0415 -- programs may have replaced its `stdout` by now

    logger.setLevel(logging.DEBUG)
    if not any(getattr(handler, "stream", None) is sys.stdout for handler in logger.handlers):
        logger.addHandler(logging.StreamHandler(sys.stdout))
