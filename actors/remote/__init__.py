"""Remote agents, called over Agent2Agent, as agents like any other.

    task_notes        the data that an invocation needs to continue its task
    requests          messages to the other agent: a task's first message, and answers to its
                      questions
    outputs           the other agent's artifacts and messages, as events
    task_stream       one task, from its current state to its end, over streams that break
    remote_run        one invocation: starts or continues the task, follows it, and cancels it if
                      the invocation is abandoned
    remote_agent      `RemoteAgent`, the definition

Data from the network is untrusted, and a second task is never started while one is running. Only
`remote_agent` is imported with `offbook.actors`. The other modules need `offbook.runtime.a2a`, and
are imported when a remote agent runs.
"""
