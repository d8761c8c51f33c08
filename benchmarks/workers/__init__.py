"""A contender in a process of its own, which stays for many rounds: for `peers`, each in its
environment, and for `compare`, each in that of its revision.

process    what runs there
worker     what tells it, and ends it
"""
