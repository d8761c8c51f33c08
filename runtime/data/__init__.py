"""What is said and shown: plain frozen values.

Owns what passes between agents, models, runs and stores. Its files, each importing only from those above it:

    readable        a `repr` that one can read
    chat            messages, their parts, pieces of them, tool calls, usage
    agent_input     what an agent is given when it begins
    run_path        the names of the agents that led somewhere, sharing their beginnings
    interrupt       where a run waits, for what, and what it was answered
    events          what a run shows
    outcome         how an agent, or a run, has ended
    run_result      what is left of a run
    run_info        what a store says of a run

It must never do anything: no input or output, no clock but a timestamp, no knowledge of actors or of stores.
"""
