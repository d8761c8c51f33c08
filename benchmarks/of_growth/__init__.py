"""The parts of `growth`.

questions    what is asked, at which sizes, and how it should grow
worker       one size of one question, in a process of its own
answer       the medians of the sizes, their exponent, and whether it is as it should be
"""
