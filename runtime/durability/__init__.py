"""Durable runs: how a run is stored as plain data, and when each part of it is written.

A step is never shown before it is written. Each module imports only from those above it:

    compatibility   checks whether a changed tree of agents still fits a stored run
    path_table      run paths as plain data, with shared prefixes written once
    image           a run as one value, and the version of that format
    journal         the same, step by step
    replay          rebuilds an image from the records of a journal
    store_keys      the keys that runs and sessions use in a store
    checkpoint      checkpoint ids, and the contents of a checkpoint's bytes
    unfinished_run  a run that a process has to continue, and which program may do so
    run_labels      the labels and sessions by which runs are searched
    rows_as_values  the rows of runs in a store that has no place for them
    store_owner     one system as an owner in one store, and its expiry
    copies          a package: detects held stores and stores of other environments, and moves
                    runs between stores
    store_access    a store as runs use it: actionable errors, and fallbacks for stores without
                    owners
    timers          what has to happen at some time, in whichever process attends
    lease           the right to write for a run or a turn, and its loss
    wanted          requests of other processes for runs and turns of this one
    leases          the queue for leases within a system, and their renewal
    saves           a package: finds and loads checkpoints, and records that an interrupt was
                    answered
    run_row         the row of a run, which has its status
    kept_outcome    the stored result of a run, for callers that ask later
    run_store       one run and its state in a store: its claim, its row, and when each part is
                    written; refuses a second resume
    lost_run        the status of a run whose process was lost and that stored nothing after its
                    last save
    answers         distributes the answers of a resume to agents and tool calls
    last_lives      serializes the recovery of runs on their last attempt
    recovery        finds and takes runs whose process is gone
"""
