"""`tool`, by which programs may call `function_tool`.

Owns: that name. It must never be another thing.
"""

from .tool import function_tool

__all__ = ["tool"]

tool = function_tool
