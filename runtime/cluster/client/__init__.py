"""A client: the program that starts a cluster, or connects to one, and requests runs from it.

    link              the connection to one host, and the detection of its loss
    routes            the choice of the host for a key
    line              the requests under one key, in order, across moves and losses
    run               a run, across the loss of its host
    runner            runs by their ids
    session           conversations
    refs              actors on other machines
    keyed             actors identified by a key
    changes           more hosts, fewer hosts, another version
    stats             statistics of the hosts
    watch             the hosts as they come and go
    cluster           the entry point

A client opens no store. Only hosts do.
"""
