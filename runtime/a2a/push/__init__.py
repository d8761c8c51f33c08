"""Push notifications: a task's changes are sent to the webhooks of its owner.

    policy          validation of webhook addresses
    configs         the webhooks of tasks; encryption of tokens
    sender          one call of a webhook
    outbox          delivers each task's changes, in order, with retries

A task never waits for its webhooks, and an address is checked immediately before each call.
"""
