"""A model's provider for the benchmarks: a server in another process that speaks OpenAI's wire
format, as fast as Python can, or as slowly as is asked for.

    replies    which reply a request gets, and its bytes
    server     the process: connections, delays, how long each turn was held
    running    what starts it and asks it, for the process that is measured

Whatever asks it is measured; therefore it must never be the slower side without saying so: it
counts its own processor time.
"""
