"""Push notifications: what happens to a task is sent to where its owner has said.

    policy          which addresses webhooks may have
    secrets         tokens and credentials, as they are kept
    configs         where the updates of a task are to be sent
    sender          one call of a webhook
    outbox          each task's changes, in their order, with repeats

It must never make a task wait, and never send to an address that was not checked a moment ago.
"""
