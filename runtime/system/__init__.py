"""Where actors live.

Owns the actors of one system, its worker threads and its counters. Its files, each importing only from those above it:

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
    loop_door       the way to a system's loop, from other loops and threads
    threaded        the same in a thread of its own

It must never keep anything of an actor that has ended.
"""
