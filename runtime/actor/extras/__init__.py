"""Features that few actors use, at no cost to the others.

timers      delayed messages to the actor itself
table       timers and stashed messages, for each actor that has used them
watching    notifications about the end of other actors
pool        several actors behind one ref
"""
