"""Immutable values for messages, events and results.

They pass between agents, models, runs and stores. The package does no input or output, reads no
clock except for timestamps, and does not depend on actors or stores. Each module imports only from
the modules above it:

    value           the base of the values
    well_formed     text that can be encoded as UTF-8
    readable        a short `repr`
    chat            messages, their parts, deltas, tool calls, usage
    whole_reply     detects incomplete replies and calls
    agent_input     the input of an agent
    run_path        the names of the agents that led somewhere, with shared prefixes
    checkpoint_id   the ids of checkpoints and interrupts
    interrupt       where a run waits, for what, and its answers
    posts           posts to a session
    events          the events of a run
    outcome         the end of an agent or a run
    output_type     the type of a run's output, for type checkers
    run_result      the result of a run
    run_info        a store's summary of a run
"""
