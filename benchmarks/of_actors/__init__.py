"""The parts of `actors`: `idle` (very many idle actors, in a process of their own), `budgets` (what
was to be reached), `page` (which panels its plot has).
"""
