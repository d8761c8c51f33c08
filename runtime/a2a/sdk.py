"""The check that the SDK is installed, before it is imported.

Importing `offbook.runtime.a2a` does not import the SDK.
"""

from __future__ import annotations

from importlib import import_module

from ..errors import UsageError

__all__ = ["need_sdk"]

_WHAT = {
    "a2a": ("a2a-sdk", "a2a"),
    "sse_starlette": ("a2a-sdk with its server", "a2a"),
    "grpc": ("grpcio", "a2a-grpc"),
}


def need_sdk(what: str, module: str = "a2a") -> None:
    """Raise a `UsageError` that names the extra, if that module of the SDK, or of its dependencies,
    is not installed. `what` is the feature that needs it.
    """
    try:
        import_module(module)
    except ModuleNotFoundError as error:
        package, extra = _WHAT.get(module, (module, "a2a"))
        msg = (
            f"{what} needs the package {package}, which is not installed: pip install "
            f"'offbook[{extra}]'."
        )
        raise UsageError(msg) from error
