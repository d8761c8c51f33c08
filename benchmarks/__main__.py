"""`python -m benchmarks` lists the benchmarks; `python -m benchmarks NAME ...` runs one, with its
own options. It imports none of them to list them.
"""

from __future__ import annotations

import runpy
import signal
import sys

from benchmarks.lab.catalogue import catalogue

USAGE = "python -m benchmarks NAME [--help | options of that benchmark]"


def main(arguments: list[str]) -> None:
    found = catalogue()
    name, *rest = arguments or ["--help"]
    if name in ("-h", "--help"):
        width = max(map(len, found))
        print(f"{USAGE}\n")
        for known, line in found.items():
            print(f"  {known:{width}}  {line}")
        return
    if name not in found:
        sys.exit(f"There is no benchmark {name!r}. There are {', '.join(found)}.")
    sys.argv = [f"python -m benchmarks {name}", *rest]
    runpy.run_module(f"benchmarks.{name}", run_name="__main__", alter_sys=False)


def _terminated(number: int, frame: object) -> None:
    """A benchmark that is told to end takes down what it started, as after Ctrl-C."""
    del frame
    sys.exit(128 + number)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, _terminated)
    try:
        main(sys.argv[1:])
    except KeyboardInterrupt:
        sys.exit("\nStopped.")
