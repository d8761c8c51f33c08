"""A spawn: its checks, and how a new actor gets into the tree.

Owns: the checks of a spawn's arguments and of the system's state, with errors that say what to do instead; and the step in which an actor becomes one of its
system's. It must never let a message in.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..actor import lifecycle
from ..actor.actor import Actor, InnerActor, Traits, construct
from ..actor.envelope import Envelope, MailboxSettings
from ..actor.inner_cell import InnerCell
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

__all__ = ["attach", "check_spawn", "check_takes", "new_cell", "put", "spawn_at_work", "spawn_inner"]


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
    """The cell of an actor on the event loop. It takes messages from the first one on, or `waits` until it is begun."""
    # To call a class is what these two steps are, and takes 0.1 µs longer.
    mailbox = object.__new__(Mailbox)
    mailbox.__init__(settings, system.lock, waits)  # type: ignore[misc]
    cell = object.__new__(LoopCell)
    cell.__init__(system, actor_class, args, kwargs or None, name, parent, supervision, mailbox)  # type: ignore[misc]
    if not waits:
        cell.phase = OPEN
    return cell


def spawn_inner(system: ActorSystem, actor_class: type[InnerActor], args: tuple[object, ...]) -> InnerCell:
    """Spawn an actor of this package, on the loop, whose mailbox is made when it is needed."""
    if system.refuses:
        check_takes(system, actor_class, None)
    if system.fault is not None:
        system.check()
    cell = object.__new__(InnerCell)
    cell.__init__(system, actor_class, args, None, None, None, None, None)  # type: ignore[misc]  # as in `new_cell`
    cell.box = None
    try:
        actor_class(cell, *args)
        attach(system, cell, None)
    except BaseException:
        system.on_loop(lifecycle.abandon, cell)
        raise
    cell.begin()
    return cell


def spawn_at_work(system: ActorSystem, actor_class: type[InnerActor], args: tuple[object, ...], name: str, parent: Cell, envelope: Envelope) -> InnerCell:
    """The same, for one that begins with that message at once, and ends when its handler of that has ended."""
    cell = object.__new__(InnerCell)
    cell.__init__(system, actor_class, args, None, name, parent, None, None)  # type: ignore[misc]  # as in `new_cell`
    cell.box = None
    actor_class(cell, *args)
    attach(system, cell, parent)
    cell.begin_at_work(envelope)
    return cell


def put(system: ActorSystem, cell: Cell, parent: Cell | None, *, listed: bool = False) -> Actor:
    """Make the instance, and put the actor into the tree. Returns the instance."""
    try:
        actor = construct(cell)
        attach(system, cell, parent, listed)
    except BaseException:
        system.on_loop(lifecycle.abandon, cell)
        raise
    return actor


def attach(system: ActorSystem, cell: Cell, parent: Cell | None, listed: bool = False) -> None:  # noqa: FBT001, FBT002 -- for speed
    """Put it into the tree. Raises if its parent has been closed meanwhile, or another root has its name."""
    with system.lock:
        if parent is None:
            if system.closing:
                check_takes(system, cell.actor_class, None)
            if listed and cell.given_name is not None:
                system.names.claim(cell, cell.given_name)
            system.roots[cell] = None
        elif not parent.may_spawn():
            msg = f"{parent.path} is {parent.state}, and takes no new child ({cell.actor_class.__name__})."
            raise ActorDeadError(msg, actor=parent.path)
        else:
            if parent.children is None:
                parent.children = {}
            parent.children[cell] = None
    if listed and parent is None:
        cell.listed = True
        registry.add(cell)
