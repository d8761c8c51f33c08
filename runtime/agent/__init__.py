"""One agent at work: its place in the tree, its history, its actor.

Owns what an invocation of an agent is, as data, and how its definition is driven. Its files, each importing only from those above it:

    relations       the callbacks by which definitions are told of one another
    tree            the protocol of a definition; the tree that definitions form
    history         lanes, one for each child of a Parallel; what an agent is given of what was said before, by its policy
    retelling       the same, made once for each message
    session_values  the values that all agents of a run share
    hooks           what looks on, and how it is called
    options         what is asked of one run only
    override        which models and tools a test has replaced
    run_context     what belongs to a run, and every agent of it may see
    run_messages    what the actors of a run send to one another
    invocation      one invocation of an agent, and the roles that it plays, as data
    input_window    which part of the conversation an invocation is given
    run_state       what one run has come to, as data
    door            what the agents of this package can do in their run
    context         a user's view of an invocation, and what leads from it to the door
    agent_actor     the actor of one invocation

It must never record, number or show an event: that is for the run's supervisor in `run/`.
"""
