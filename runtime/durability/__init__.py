"""What outlives a process.

Owns the form of a run as plain data, and when which part of it is written. Its files, each importing only from those above it:

    compatibility   whether a tree that has changed still fits what was kept of a run
    image           a run as one value, and the version of that format
    journal         the same, step by step
    checkpoint      what a checkpoint is called, and what its bytes say, with the version of their format
    lease_owner     the owners of leases, and which of them are certainly gone
    store_access    a store, as runs use it: the keys, and errors that say what to do
    leases          which process works on which run or session; what happens when a lease is lost
    long_history    a long history, in pieces
    persistence     what is kept of one run, and when it is written; that a second resume of an interrupt is refused
    answers         which agent or tool call is given which answer by a resume
    recovery        runs that have no process any more

It must never start an agent, and never let a step be shown that is not written.
"""
