"""The parts of `agents`.

workloads     its questions, and how much of each makes one round
footprint     definitions, sessions and imports, in processes of their own
census        the objects that the garbage collector looks at, by type
tables        the tables of these
page          which panels its plot has
budgets       what was to be reached
"""
