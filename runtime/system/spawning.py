"""Spawning: the checks of a spawn, and the insertion of a new actor into the tree.

The module checks a spawn's arguments and the system's state, with errors that name the remedy, and
adds the actor to its system. It does not open the mailbox.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..actor import lifecycle
from ..actor.actor import Actor, Traits, construct
from ..actor.envelope import MailboxSettings
from ..actor.loop_cell import LoopCell
from ..actor.mailbox import Mailbox
from ..actor.phase import OPEN
from ..actor.supervision import Directive, Supervision
from ..errors import ActorDeadError, SystemDraining, UsageError
from . import registry
from .state import SystemState

if TYPE_CHECKING:
    from ..actor.cell import Cell
    from .system import ActorSystem

__all__ = [
    "attach",
    "check_spawn",
    "check_takes",
    "new_cell",
    "put",
]


def check_spawn(actor_class: object, name: object, mailbox: object, supervision: object) -> Traits:
    """Raise if no actor can be spawned with these arguments. Returns the traits of its class."""
    # Equivalent to issubclass(), which takes a microsecond for an abstract class.
    traits = getattr(actor_class, "__actor_traits__", None)
    if type(traits) is not Traits or not isinstance(actor_class, type):
        msg = (
            f"spawn(): the first argument must be an actor class, got {actor_class!r}. Pass a "
            "subclass of offbook.runtime.Actor or ThreadActor, and its arguments after it."
        )
        raise UsageError(msg)
    if name is not None and not isinstance(name, str):
        msg = (
            f"spawn({actor_class.__name__}): name must be a string, got {name!r}. Pass one, or "
            "leave it out."
        )
        raise UsageError(msg)
    if mailbox is not None and not isinstance(mailbox, MailboxSettings):
        msg = (
            f"spawn({actor_class.__name__}): mailbox must be MailboxSettings, got {mailbox!r}. "
            "Pass MailboxSettings(capacity=...), or leave it out."
        )
        raise UsageError(msg)
    if supervision is not None and not isinstance(supervision, Directive):
        msg = (
            f"spawn({actor_class.__name__}): supervision must be Restart(), Resume(), Stop() or "
            f"Escalate(), got {supervision!r}. Pass one of them, or leave it out."
        )
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
        msg = (
            f"{name} cannot be spawned: {system!r} accepts no new work, because it is about to "
            "stop. Use another system."
        )
        raise SystemDraining(msg)
    msg = f"{name} cannot be spawned: {system!r} is {system.state.value}. Make a new system."
    raise UsageError(msg)


def new_cell(
    system: ActorSystem,
    actor_class: type[Actor],
    args: tuple[object, ...],
    kwargs: dict[str, object],
    name: str | None,
    parent: Cell | None,
    supervision: Supervision | None = None,
    settings: MailboxSettings | None = None,
    *,
    waits: bool = True,
) -> LoopCell:
    """Create the cell of an actor on the event loop.

    It takes messages at once, or, with `waits`, once it is started.
    """
    mailbox = (
        None
        if settings is None or settings.capacity is None
        else Mailbox(settings, system.lock, engaged=waits)
    )
    cell = LoopCell(system, actor_class, args, kwargs or None, name, parent, supervision, mailbox)
    if not waits:
        cell.phase = OPEN
    return cell


def put(system: ActorSystem, cell: Cell, parent: Cell | None, *, listed: bool = False) -> Actor:
    """Create the instance, and put the actor into the tree. Returns the instance."""
    try:
        actor = construct(cell)
        attach(system, cell, parent, listed=listed)
    except BaseException:
        system.on_loop(lifecycle.abandon, cell)
        raise
    return actor


def attach(system: ActorSystem, cell: Cell, parent: Cell | None, *, listed: bool = False) -> None:
    """Put an actor into the tree.

    Raises if its parent was closed meanwhile, or if another root has its name.
    """
    with system.lock:
        if parent is None:
            if system.closing:
                check_takes(system, cell.actor_class, None)
            if listed and cell.given_name is not None:
                system.names.claim(cell, cell.given_name)
            system.roots[cell] = None
        elif not parent.may_spawn():
            msg = (
                f"{parent.path} is {parent.state}, and accepts no new child "
                f"({cell.actor_class.__name__})."
            )
            raise ActorDeadError(msg, actor=parent.path)
        else:
            if parent.children is None:
                parent.children = {}
            parent.children[cell] = None
    if listed and parent is None:
        cell.listed = True
        registry.add(cell)
