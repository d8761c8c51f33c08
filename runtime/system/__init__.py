"""Where actors live.

Owns the actors of one system, its worker threads and its counters. Its files, each importing only from those above it:

    state           the states of a system
    options         what a system is made with
    loop_sampler    what it was doing meanwhile, as another thread sees it
    loop_meter      how long something has held the loop
    monitor         counters, dead letters, the warning about slow handlers
    registry        our actors in pykka's global registry
    fork            the hooks around a fork
    dispatcher      scheduling: which actor handles its messages next
    blocking_call   one call in a worker thread
    process_end     the end of the process: calls that do not return are left behind
    workers         worker threads for single calls that block
    spawning        the checks of a spawn
    stats           snapshots, as values
    names           actors by the names that they were given
    overview        what of `ActorSystem` only looks
    draining        waiting until no actor has work
    shutdown        the end, children before parents
    system          `ActorSystem`
    loop_door       the way to a system's loop, from other loops and threads
    threaded        the same in a thread of its own

It must never keep a reference to an actor that has ended.
"""
