"""A client: the program that starts a cluster, or connects to one, and asks it for runs.

    link             the way to one host, and the finding that it is lost
    routes           which host is asked for which key
    run              a run, through the loss of its host
    runner           runs by their ids
    session          conversations
    refs             actors on other machines
    keyed            actors that a key calls
    changes          more hosts, fewer, another version
    stats            what the hosts do
    cluster          the front door

It must never open a store: only hosts do.
"""
