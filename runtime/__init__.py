"""How it runs: actors, their mailboxes, their supervision and the system that they live in.

Files, each importing only from those above it (but for `cell`, `lifecycle` and `ref`, which are one thing in three parts):

    errors, clock, supervision    what can go wrong; where time comes from; what to do with a failed child, as data
    mailbox, future               the one queue; the reply that is still to come
    messages, steps, monitor      what the runtime itself sends; a user's coroutine, driven by hand; the counters
    dispatcher, directory         who is next; which system is where
    ref, cell, lifecycle          an actor from outside, from inside, and through its life
    thread_cell                   the same for an actor with a thread of its own
    actor                         what users subclass
    stats, system, threaded       a look from outside; where actors live; the same in a thread
    testing                       the clock that is moved by hand

It knows no agent, and never imports `understudy.actors`.
"""

from .actor import Actor, ThreadActor
from .clock import Clock
from .envelope import MailboxSettings
from .errors import ActorDeadError, ActorFailed, AskTimeout, HandlerCancelled, MailboxFull, SystemDraining, UnderstudyError, UsageError
from .future import ActorFuture
from .messages import Failed, Stopped, Terminated
from .monitor import DeadLetter
from .ref import ActorRef
from .stats import ActorNode, DrainReport, SystemStats
from .supervision import Backoff, Directive, Escalate, Restart, Resume, Stop, Supervision
from .system import ActorSystem

__all__ = [
    "Actor",
    "ActorDeadError",
    "ActorFailed",
    "ActorFuture",
    "ActorNode",
    "ActorRef",
    "ActorSystem",
    "AskTimeout",
    "Backoff",
    "Clock",
    "DeadLetter",
    "Directive",
    "DrainReport",
    "Escalate",
    "Failed",
    "HandlerCancelled",
    "MailboxFull",
    "MailboxSettings",
    "Restart",
    "Resume",
    "Stop",
    "Stopped",
    "Supervision",
    "SystemDraining",
    "SystemStats",
    "Terminated",
    "ThreadActor",
    "UnderstudyError",
    "UsageError",
]
