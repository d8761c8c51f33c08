"""The checks of a spawn.

Owns: the checks of a spawn's arguments and of the system's state, with errors that say what to do instead. It must never spawn anything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..actor.actor import Traits
from ..actor.envelope import MailboxSettings
from ..actor.supervision import Directive
from ..errors import SystemDraining, UsageError
from .state import SystemState

if TYPE_CHECKING:
    from ..actor.cell import Cell
    from .system import ActorSystem

__all__ = ["check_spawn", "check_takes"]


def check_spawn(actor_class: object, name: object, mailbox: object, supervision: object) -> Traits:
    """Raise if no actor can be spawned with these arguments. Returns the traits of its class."""
    traits = getattr(actor_class, "__actor_traits__", None)  # as good as issubclass(), which takes a microsecond for an abstract class
    if type(traits) is not Traits or not isinstance(actor_class, type):
        msg = f"spawn({actor_class!r}) is given no actor class. Give a subclass of understudy.runtime.Actor or ThreadActor, and its arguments after it."
        raise UsageError(msg)
    if name is not None and not isinstance(name, str):
        msg = f"spawn({actor_class.__name__}, name={name!r}): give a text, or leave it out."
        raise UsageError(msg)
    if mailbox is not None and not isinstance(mailbox, MailboxSettings):
        msg = f"spawn({actor_class.__name__}, mailbox={mailbox!r}): give MailboxSettings(capacity=...), or leave it out."
        raise UsageError(msg)
    if supervision is not None and not isinstance(supervision, Directive):
        msg = f"spawn({actor_class.__name__}, supervision={supervision!r}): give Restart(), Resume(), Stop() or Escalate(), or leave it out."
        raise UsageError(msg)
    return traits


def check_takes(system: ActorSystem, actor_class: type, parent: Cell | None) -> None:
    """Raise if the system takes no actor now."""
    name = getattr(actor_class, "__name__", repr(actor_class))
    if system.state is SystemState.NEW:
        msg = f"{name} cannot be spawned: {system.not_entered}"
        raise UsageError(msg)
    if parent is not None:
        return
    if system.state is SystemState.DRAINING:
        msg = f"{name} cannot be spawned: {system!r} takes no new work, because it is about to stop."
        raise SystemDraining(msg)
    msg = f"{name} cannot be spawned: {system!r} is {system.state.value}. Make a new system."
    raise UsageError(msg)
