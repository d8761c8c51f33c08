"""Following a run from outside: one in another process, or one that another caller started.

A follower sees the run's events and its end. It changes nothing, except that it can ask the run to
end. Each module imports only from the modules above it:

    live_runs   the runs of this process, for their followers
    following   the opening of a run that only follows another run
"""
