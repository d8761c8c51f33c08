"""The benchmarks: `python -m benchmarks` lists them, `python -m benchmarks NAME` runs one.

README.md beside it says what their figures mean.

    NAME.py           a benchmark: a module here that has a function `main`. Its docstring's first
                      line is its line in the list
    of_NAME/          the parts of that benchmark
    contenders/       what is measured: a file for each library, used as its own documentation has
                      it
    lab/              stopwatch, processes, statistics, tables, plots: serves any benchmark, and
                      must never know of agents or actors
    results/          what a run writes

Modules import each other by their whole name (`from benchmarks.lab.measure import ...`), because a
benchmark may bear the name of a library. A benchmark must never install a peer without being asked,
and never write outside of `--output`, the folder of environments and temporary folders.
"""
