"""The demo of `offbook demo`: agents with scripted replies that plan a trip, in processes of which
one is killed in the middle.

    trip    the agents
    worker  one process: it begins the run, continues it, or answers what it waits for

`examples.json` holds the examples for where the package is installed; `python -m
tests.programs.pack_examples` writes it.

It must never need a key or the network, nor be imported by anything else: the command starts it.
"""
