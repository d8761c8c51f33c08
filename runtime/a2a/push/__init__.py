"""Push notifications: a task's changes are sent to the webhooks of its owner.

    policy          validation of webhook addresses
    secrets         encryption of tokens and credentials
    configs         the webhooks of tasks
    sender          one call of a webhook
    outbox          delivers each task's changes, in order, with retries

A task never waits for its webhooks, and an address is checked immediately before each call.
"""
