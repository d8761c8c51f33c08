"""The parts of `http`.

server          the provider
contenders      who is asked: what a run over HTTP is, for each of them
peers           the same for other frameworks, whose libraries are imported when they are asked for
process         one contender in a process of its own, which makes rounds
workloads       the rounds: what is asked, and how many at once
table           the tables of these
"""
