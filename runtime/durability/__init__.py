"""What outlives a process.

Owns the form of a run as plain data, and when which part of it is written. Its files, each importing only from those above it:

    compatibility   whether a tree that has changed still fits what was kept of a run
    path_table      run paths as plain data, of which the beginnings are written once
    image           a run as one value, and the version of that format
    journal         the same, step by step
    store_keys      the keys under which everything is in a store
    checkpoint      what a checkpoint is called, and what its bytes say, with the version of their format
    store_owner     one system as an owner in one store: until when it is certainly alive
    store_access    a store, as runs use it: errors that say what to do, and what is done where it has no owners
    lease           the right to write for a run or a turn; what happens when it is lost
    wanted          what other processes want of what is at work here
    leases          which run of a system gets a lease next, and how it is prolonged
    run_lease       the lease of one run
    long_history    a long history, in pieces
    saves           where the saves of a checkpoint are, and that an interrupt was answered, once: a package
    open_mark       that a run is not finished
    run_listing     what the store lists of a run
    kept_outcome    how a run has ended, for callers that ask later
    loading         finding a checkpoint, and the image that it holds
    persistence     what is kept of one run, and when it is written; that a second resume of an interrupt is refused
    answers         which agent or tool call is given which answer by a resume
    last_lives      which of the runs that have ended their processes too often is taken next
    recovery        runs that have no process any more

It must never start an agent, and never let a step be shown that is not written.
"""
