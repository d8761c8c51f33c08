"""One running agent: its place in the tree, its history, its actor.

The package contains the data of an invocation, and the actor that runs an agent's definition. The
run's supervisor in `run/` records, numbers and shows the events. Each module imports only from the
modules above it:

    relations       the callbacks that introduce parent and sub-agents to each other
    tree            the protocol of a definition; the tree that definitions form
    history         lanes, one for each child of a Parallel; the policies for an agent's history
    retelling       a cache of the history as one agent sees it
    session_values  the values that all agents of a run share
    hooks           the observers of runs and agents, and their calls
    options         options for one run
    override        the models and tools that a test replaces
    run_context     the facts of a run that every agent in it may see
    run_messages    the messages between the actors of a run
    invocation      one invocation of an agent, and the agent calls that it holds, as data
    input_range    the part of the conversation that an invocation receives
    run_state       the current state of a run, as data
    agent_runtime   the run's interface for the agents of this library
    context         a user's view of an invocation, with access to the runtime
    agent_actor     the actor of one invocation
"""
