"""A host: the process that contains runs, sessions and actors of a cluster.

    play              one run, for a remote client
    runs              the runs that clients have requested, and the lines of sessions
    actors            the actors that were spawned remotely
    clients           the links of clients, and the detection of lost clients
    takeover          the work that lost hosts have left
    requests          the handlers of clients' requests
    host              one incarnation, from its entry to its end
    life              incarnation after incarnation, in one process

It does not depend on Ray, only on the interface in `transport`.
"""
