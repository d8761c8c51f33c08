"""Where actors live.

Owns the actors of one system, its worker threads and its counters. Its files, each importing only from those above it:

    state           the states of a system
    options         what a system is made with
    monitor         counters, dead letters, the warning about slow handlers
    registry        which actors pykka knows of
    fork            what a forked process gets
    dispatcher      which actor handles its messages next
    workers         the threads in which single calls block
    spawning        what may be spawned
    stats           a look from outside, as values
    draining        waiting until all is quiet
    shutdown        the end, children before parents
    system          `ActorSystem`
    threaded        the same in a thread of its own

It must never keep anything of an actor that has ended.
"""
