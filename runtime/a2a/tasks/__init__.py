"""The tasks of a served agent: one actor for each active task; all others are only in the store.

    keys                the owner of a task; the keys in the store
    checks              the transitions between states; validation of requests
    json_values         conversion of an agent's values to JSON
    task_log            the current state of one task, and its unsaved changes
    subscription        one client that follows a task, also of another process
    asks                the messages to a task's actor
    telling             conversion of an agent's events for a client
    client_messages     conversion of a client's messages for an agent; which are accepted
    player              the interface that runs a task
    agent_player        runs an agent for a task
    handler_player      runs custom functions for a task
    turn                from a message to the pause or end of the task: stored, then shown
    task_actor          the actor: its queue, its followers, its current turn
    recovery            tasks that another process has left in progress
    service             all tasks, and their actors
    listing, eviction   an owner's tasks, page by page; their retention

A client never sees a change before it is stored, nor a task of another owner.
"""
