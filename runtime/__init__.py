"""How it runs: actors, their mailboxes, their supervision and the system that they live in.

Files, each importing only from those above it (but for `cell`, `lifecycle` and `ref`, which are one thing in three parts):

    errors, clock                       what can go wrong; where time comes from
    supervision, phase                  what to do with a failed child, and where an actor is in its life, as data
    envelope, mailbox                   what is sent; the one queue that it waits in
    directory, registry, fork           which system is where; which actors pykka knows of; what a forked process gets
    future, waiting                     the reply that is still to come; waiting for room in a mailbox
    messages, receive, replies          what the runtime itself sends; what proxies send; what whoever asked is told
    steps, monitor, dispatcher          a user's coroutine, driven by hand; the counters; who is next
    ref, cell, lifecycle, watching      an actor from outside, from inside, through its life; who is told of its end
    loop_cell, thread_cell              the handling of messages, on the loop and in a thread
    actor                               what users subclass
    stats, draining, shutdown           a look from outside; waiting until all is quiet; the end
    system, threaded                    where actors live; the same in a thread
    testing                             the clock that is moved by hand

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
