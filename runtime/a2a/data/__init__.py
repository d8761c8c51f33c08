"""The values of Agent2Agent: plain and frozen.

    parts           the parts of messages and artifacts: text, data, files
    message         one message between a client and an agent
    task            a task, its state and status, its artifacts
    stream_events   the events of a stream: status changes, and artifacts in chunks
    extension       the extension that reports the steps inside a task
    actions         actions of an agent for Agent2Agent, as values of a `CustomAction`
    question        the question of a remote task, as an interrupt
    card            an agent's card

This package imports neither the SDK nor protobuf: `conversion` converts these values.
"""
