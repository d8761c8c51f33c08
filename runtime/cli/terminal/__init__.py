"""Terminal output of the command. It never asks for anything, nor starts a run.

screen          writes with or without colours, for any width and encoding; wraps words
shell           formats commands for the user to type
event_view      shows a run in a terminal
"""
