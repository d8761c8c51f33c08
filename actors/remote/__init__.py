"""Agents of others, asked over Agent2Agent, as agents like any other.

    task_notes      what an invocation has to know to go on with the task that it has begun
    requests        what the other agent is told: a task's first message, and answers to what it asks
    outputs         what it says and makes, as events
    task_stream     one task, from wherever it stands to its end, over streams that break
    remote_run      one invocation: the task is begun or taken up, followed, and canceled if it is given up
    remote_agent    `RemoteAgent`, the definition

It must never believe what comes over the wire, nor begin a second task where one is under way. Only `remote_agent` is imported with `understudy.actors`; the
others stand on `understudy.runtime.a2a`, and are imported when one plays.
"""
