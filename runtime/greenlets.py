"""The check that real threads are available, because gevent can replace them.

The module never imports gevent.
"""

from __future__ import annotations

import sys

from .errors import UsageError

__all__ = ["refuse_greenlets"]


def refuse_greenlets(what: str) -> None:
    """Raise if `threading.Thread` starts greenlets.

    An event loop in one greenlet would appear to run in every greenlet of its thread, and a
    blocking call in one would block all.
    """
    monkey = sys.modules.get("gevent.monkey")
    if monkey is not None and monkey.is_module_patched("threading"):
        msg = (
            f"{what} needs threads of the operating system, and gevent has replaced them by "
            "greenlets (gevent.monkey.patch_all()). Use a server with real "
            "threads or an event loop: gunicorn --worker-class gthread, celery --pool "
            "threads or prefork, or uvicorn."
        )
        raise UsageError(msg)
