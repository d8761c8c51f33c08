"""One actor: its mailbox, its handle, its life.

Owns what an actor is, on the event loop or in a thread, built on pykka's extension points. Its files, in five groups:

    outside     actor, ref, future, waiting, messages, supervision, report      what users subclass, call, wait for, configure and read
    more        extras                                                  timers, messages put aside, watches; several actors behind one ref
    mailbox     envelope, mailbox                                       messages; the one queue in which they wait
    inside      cell, loop_cell, inner_cell, thread_cell, receive, replies, steps, direct       how a message is handled and answered
    life        phase, lifecycle, host, current                         starting, failing, stopping; the system it lives in

It must never know what an agent is, and never call a user's code while it holds a lock.
"""
