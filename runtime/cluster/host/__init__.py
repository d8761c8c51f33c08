"""A host: the process in which runs, sessions and actors of a cluster live.

    play             one run, for a client somewhere else
    runs             the runs that clients have asked for, and the lines of sessions
    actors           the actors that were spawned from elsewhere
    clients          the links of clients, and which client is gone
    takeover         what lost hosts have left
    requests         what clients ask, each kind with what does it
    host             one incarnation, from its entry to its end
    life             incarnation after incarnation, in one process

It must never know Ray: what it needs is in `transport`.
"""
