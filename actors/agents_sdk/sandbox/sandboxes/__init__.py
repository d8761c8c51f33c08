"""The kinds of sandboxes.

Owns the names of their clients. It must never start one.
"""
