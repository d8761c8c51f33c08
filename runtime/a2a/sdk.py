"""The one door to the SDK: what needs it says so here, before it imports it.

Owns: the sentence that a user is told whose installation lacks the extra. Importing `understudy.runtime.a2a` must never import the SDK.
"""

from __future__ import annotations

from importlib import import_module

from ..errors import UsageError

__all__ = ["need_sdk"]

_WHAT = {"a2a": ("a2a-sdk", "a2a"), "sse_starlette": ("a2a-sdk with its server", "a2a"), "grpc": ("grpcio", "a2a-grpc")}


def need_sdk(what: str, module: str = "a2a") -> None:
    """Raise a `UsageError` that names the extra, if that module of the SDK, or of what it stands on, is not installed. `what` is who needs it."""
    try:
        import_module(module)
    except ModuleNotFoundError as error:
        package, extra = _WHAT.get(module, (module, "a2a"))
        msg = f"{what} needs the package {package}, which is not installed: pip install 'understudy[{extra}]'."
        raise UsageError(msg) from error
