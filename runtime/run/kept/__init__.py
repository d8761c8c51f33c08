"""Queries about the runs in a store, and their removal. Nothing here runs a run.

forgetting      removing everything stored for a run
stopping        ending a run that waits for an answer
pruning         removing the data of unreachable runs
kept_life       everything that a store has of one run
kept_runs       the queries behind runs, info, pending and forget of a Runner
"""
