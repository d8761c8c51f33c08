"""The actor system: the actors on one loop, its worker threads and its counters.

It keeps no reference to an ended actor. Each module imports only from the modules above it:

    state           the states of a system
    full_collections full garbage collections, paced
    options         the options of a system
    loop_sampler    the activity of a blocked loop, sampled from another thread
    loop_meter      the time for which the loop was blocked
    monitor         counters, dead letters, the warning about slow handlers
    registry        our actors in pykka's global registry
    fork            the hooks around a fork
    dispatcher      scheduling: which actor handles its messages next
    blocking_call   one call in a worker thread
    process_end     the end of the process: a last wait for running calls
    workers         worker threads for single blocking calls
    spawning        the checks of a spawn
    stats           snapshots, as values
    names           root actors by name
    draining        waiting until no actor has work
    shutdown        stopping, children before parents
    shutdown_signal the signal that the process is about to end
    system          `ActorSystem`
    loop_bridge       access to a system's loop from other loops and threads
    threaded        a system in its own thread
"""
