"""The values of Agent2Agent: plain and frozen.

    parts           the parts of messages and artifacts: text, data, files
    message         one message between a client and an agent; the question of a remote task
    task            a task, its state and status, its artifacts; the events of a stream
    actions         actions of an agent for Agent2Agent, as values of a `CustomAction`
    card            an agent's card, and its extension

This package imports neither the SDK nor protobuf: `conversion` converts these values.
"""
