"""Writes the examples into the package, for where it is installed: `python -m
tests.programs.pack_examples`.
"""

import json
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKED = ROOT / "actors" / "demo" / "examples.json"


def packed():
    """The examples by their names, each as its lines."""
    return (
        json.dumps(
            {
                path.stem: path.read_text().split("\n")
                for path in sorted((ROOT / "examples").glob("*.py"))
            },
            indent=1,
        )
        + "\n"
    )


if __name__ == "__main__":
    PACKED.write_text(packed())
