"""What the command writes in a terminal.

Owns how it looks there. Its files:

    word_wrap       lines that end between words, as the words come
    screen          what is written: with colours or without, for any width and any characters
    event_view      a run as it is read in a terminal

It must never ask for anything, nor begin a run.
"""
