"""A notebook: a real kernel that executes cells."""

import json
import os
import subprocess
import sys
from pathlib import Path

PROGRAM = Path(__file__).parents[1] / "programs" / "notebook.py"
SECONDS = 60


def notebook(cells, tmp_path):
    """Execute the cells in a kernel.

    Returns for each what it has shown, or its error; and whether the kernel outlives its shutdown.
    """
    environment = os.environ | {
        "IPYTHONDIR": str(tmp_path / "ipython"),
        "JUPYTER_RUNTIME_DIR": str(tmp_path / "jupyter"),
        "PYDEVD_DISABLE_FILE_VALIDATION": "1",
    }
    program = [sys.executable, PROGRAM]
    done = subprocess.run(
        program,
        input=json.dumps(cells),
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    *results, last = [json.loads(line) for line in done.stdout.splitlines()]
    assert last == {"alive": False}
    return [result["error"] or result["shown"].strip() for result in results]
