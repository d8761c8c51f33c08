"""One run: from its start to its result.

Owns the single writer of a run and everything that only it decides. Its files, each importing only from those above it:

    phase           where a run is in its life, and in whose hands
    effects         what is left to do after a transition of its supervisor
    run_options     what a run may be given beside its messages, as types
    stream          events on their way to the consumer
    watched_system  one system, as measures have it
    run_record      what is known of a run, between its supervisor and its `Run`
    event_log       the order of events: stamped, recorded, written to the store, shown
    cancellation    how a run is ended before its end: at once, or at a safe point, which an agent reaches by its door
    casting         which agents play, in which roles, and which agent follows a transfer
    last_words      the last that is done for a run
    following       a run that is looked at from outside
    opening         from where a run starts
    run_supervisor  the single writer: an actor
    event_iterator  one iteration over a run's events
    run             a run, as its caller sees it
    run_factory     what makes the runs of one Runner, and chooses where each lives
    overriding      other models and tools, for a test
    kept            what can be asked of the runs in a store: a package
    recovery_loop   recovering again and again, for a service
    map_progress    how far a long piece of work has come
    mapping         one agent over many inputs

It must never run an agent's code: that is for the agents' own actors in `agent/`.
"""
