"""What any benchmark needs. It must never know of agents, actors or a library that is measured.

catalogue     which benchmarks there are
machine       what the machine is; on which core a round runs
measure       stopwatch, interleaving, percentiles
statistics    medians with their intervals, verdicts, exponents
process       one figure in a process of its own
report        tables for the terminal, budgets, JSON files
panels, plot  the page of bar charts
lines         the page of line charts
"""
