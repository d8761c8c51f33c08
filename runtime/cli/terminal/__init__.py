"""Terminal output of the command. It never asks for anything, nor starts a run.

word_wrap       wraps lines between words, as text arrives
screen          writes with or without colours, for any width and any encoding
shell           formats commands for the user to type
event_view      shows a run in a terminal
"""
