"""One actor: its mailbox, its handle, its lifecycle.

Actors run on the event loop or in a thread, and build on pykka's extension points. This package
does not depend on agents, and never calls user code while it holds a lock. Its modules form five
groups:

    outside     actor, ref, future, waiting, messages, supervision, report      the public API: to
                subclass, call, wait for, configure and read
    more        extras                                                  timers, stashed messages,
                watches; several actors behind one ref
    mailbox     envelope, mailbox                                       messages; their queue
    inside      cell, loop_cell, thread_cell, receive, replies, steps, direct       how a message is
                handled and answered
    lifecycle   phase, lifecycle, host, current                         starting, failing, stopping;
                the actor's system
"""
