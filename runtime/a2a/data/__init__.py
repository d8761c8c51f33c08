"""What Agent2Agent says: plain frozen values of our own.

    parts           the pieces of messages and artifacts: text, data, files
    message         one message between a client and an agent
    task            a task, its state and status, its artifacts
    stream_events   what a stream shows: changes of a task's status, pieces of its artifacts
    actions         what an agent says to Agent2Agent by a `CustomAction`
    question        what a task of another agent waits for, as a run of ours shows it
    card            how an agent introduces itself

It must never import the SDK, nor protobuf: the server and the client convert these values at the wire.
"""
