"""Messages that do not go to `on_receive`: method calls and attribute access by pykka's proxies.

The module contains the table of these messages, and the display name of a handler. It sends no
replies, and does not catch exceptions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from pykka import messages as pykka_messages
from pykka._introspection import get_attr_directly

from .messages import StopRequest

if TYPE_CHECKING:
    from .cell import Cell

__all__ = ["SPECIAL", "handler_name"]


def handler_name(message: object) -> str:
    """Return the name of the message's handler: the method that a proxy calls, or `on_receive`."""
    if isinstance(message, pykka_messages.ProxyCall):
        return ".".join(message.attr_path)
    return "on_receive"


def _call(cell: Cell, message: pykka_messages.ProxyCall) -> object:
    return get_attr_directly(cell.actor, message.attr_path)(*message.args, **message.kwargs)


def _get(cell: Cell, message: pykka_messages.ProxyGetAttr) -> object:
    return get_attr_directly(cell.actor, message.attr_path)


def _set(cell: Cell, message: pykka_messages.ProxySetAttr) -> None:
    setattr(
        get_attr_directly(cell.actor, message.attr_path[:-1]), message.attr_path[-1], message.value
    )


def _stop(cell: Cell, _message: pykka_messages._ActorStop) -> None:
    cell.post_control(StopRequest(), seal=True)


# The messages of pykka's proxies and of pykka's stop().
SPECIAL: Final[dict[type, Callable[[Cell, Any], Any]]] = {
    pykka_messages.ProxyCall: _call,
    pykka_messages.ProxyGetAttr: _get,
    pykka_messages.ProxySetAttr: _set,
    pykka_messages._ActorStop: _stop,
}
