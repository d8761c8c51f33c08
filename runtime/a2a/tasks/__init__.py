"""The tasks of a served agent: one actor for each that something is done with, and the store for all others.

    owner, keys         to whom a task belongs; under which keys everything is in a store
    states, checks      which state may follow which; what is looked at in a request before anything is done
    json_values         whatever an agent gives, as what JSON can hold
    task_log            one task as it is now, and what of it is not in the store yet
    subscription        one client that looks on; tailing: the same, where another process works on the task
    asks                what a task is asked for
    telling             what an agent's events are to a client; client_messages: what a client says, to an agent
    player              what works on a task: agent_player: an agent; handler_player: functions of the user's own
    turn                from a message to the task's rest: stored, then shown
    task_actor          the actor: what waits, who looks on, which turn is played
    recovery            tasks that a process has left at work
    service             all tasks, and the way to each
    listing, eviction   an owner's tasks, page by page; which are kept, and for how long

It must never show a client what the store does not have, nor tell an owner of what belongs to another one.
"""
