"""One run of an agent tree, from its start to its result.

The package contains the single writer of a run and the decisions that only this writer makes. The
agents' own code runs in the actors of `agent/`. Each module imports only from the modules above it:

    phase           the phases of a run, and which process owns it
    effects         the work that remains after a transition of the supervisor
    run_options     the types of a run's options
    stream          the bounded buffer between a run and its consumer
    watched_system  one actor system, as the metrics see it
    run_progress      the known facts of a run, shared by its supervisor and its `Run`
    event_log       the order of events: stamped, recorded, stored, shown
    cancellation    ending a run early: immediately or at a safe point
    casting         which agents run, in which roles, and who follows a transfer
    finish          the final work for a run: hooks, the store, the session
    follow          following a run from outside: a package
    opening         where a run starts from
    run_supervisor  the single writer: an actor
    event_iterator  one iteration over a run's events
    run             a run as its caller sees it
    background      agents that outlive the call that started them
    run_factory     creates the runs of one Runner, and chooses a system for each
    approving       the interrupt that an answer applies to
    kept            queries about the runs in a store: a package
    recovery_loop   periodic recovery, for a service
    session_events  the events of all turns of a session
    attending       starting turns for posts to idle sessions
    schedules       runs that start at certain times
    map_progress    the progress of a mapping
    mapping         one agent over many inputs
"""
