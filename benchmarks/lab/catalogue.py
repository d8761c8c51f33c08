"""Which benchmarks there are: the modules of `benchmarks/` with a function `main`.

They are read, not imported, so that a missing library hides none.
"""

from __future__ import annotations

import ast
from pathlib import Path

__all__ = ["FOLDER", "RESULTS", "ROOT", "catalogue"]

FOLDER = Path(__file__).parents[1]
ROOT = FOLDER.parent
RESULTS = FOLDER / "results"


def catalogue(folder: Path = FOLDER) -> dict[str, str]:
    """The first line of each benchmark's docstring, by its name."""
    found = {}
    for path in sorted(folder.glob("*.py")):
        if path.name.startswith("_"):
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
        if any(isinstance(node, ast.FunctionDef) and node.name == "main" for node in tree.body):
            docstring = (ast.get_docstring(tree) or "").strip()
            found[path.stem] = (
                docstring.splitlines()[0] if docstring else "(its module has no docstring)"
            )
    return found
