"""The parts of `peers`.

workloads      its questions, how much of each makes one round, and what can be said of it in one
               figure
environments   an environment for each peer, made by uv or by venv and pip
worker         the process of one contender: it makes a round when it is told to, and says what it
               took
book           what has been measured, a line for each round, so that a run that was stopped goes on
               where it was
rounds         which contender is next: interleaved, each in its own process
table          the tables, in Markdown
page           which panels its plot has
"""
