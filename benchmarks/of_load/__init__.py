"""The parts of `load`.

conversations    what one conversation is: its agents, its turns, what its user says and waits
worker           one load, in a process of its own: all conversations at once, and what they cost
level            what came out of it: figures, rows of the table
page             which charts its plot has
"""
