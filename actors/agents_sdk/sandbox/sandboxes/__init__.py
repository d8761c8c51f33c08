"""The kinds of sandboxes.

Owns the names of their clients: `unix_local`. It must never start one.
"""
