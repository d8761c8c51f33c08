"""The runs that a store has.

Owns what can be asked of them. Its files:

    forgetting      removing all that is kept of a run
    kept_life       all that a store has of one run
    kept_runs       runs, info, pending, forget, and what else a Runner is asked

It must never work on a run.
"""
