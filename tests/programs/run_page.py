"""Runs programs one after the other as the main module, each in an empty folder: python -W error run_page.py FOLDER < programs.json

Says what each has printed, and how it ended, as JSON. Each finds the modules of its page beside it. A program must find nothing of the one before: neither files, nor names, nor its main module.
"""

import contextlib
import gc
import io
import json
import linecache
import logging
import os
import re
import sys
import traceback
from pathlib import Path
from types import ModuleType

FAILED = re.compile(r"Run \S+ of .+ has failed")


class Warned(logging.StreamHandler):
    """Writes what the library warns of where Python would, but for runs that have failed: pages show such runs on purpose."""

    def emit(self, record: logging.LogRecord) -> None:
        if not FAILED.match(record.getMessage()):
            self.setStream(sys.stderr)
            super().emit(record)


def run(code: str, name: str) -> dict[str, object]:
    """Its output, what it has written to stderr, and its error, if it has one."""
    linecache.cache[name] = (len(code), None, code.splitlines(keepends=True), name)  # for tracebacks, and for who asks for a function's source
    main = ModuleType("__main__")
    main.__dict__["__file__"] = name
    sys.modules["__main__"] = main
    logging.getLogger("understudy").setLevel(logging.NOTSET)  # the root's: warnings
    out, err, error = io.StringIO(), io.StringIO(), None
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            exec(compile(code, name, "exec", dont_inherit=True), main.__dict__)
        except (Exception, SystemExit):
            error = traceback.format_exc()
        gc.collect()  # what was left open says so when it is collected
    return {"output": out.getvalue(), "stderr": err.getvalue(), "error": error}


if __name__ == "__main__":
    logging.getLogger("understudy").addHandler(Warned())
    folder, done = Path(sys.argv[1]), []
    for number, program in enumerate(json.load(sys.stdin)):
        place = folder / str(number)
        place.mkdir()
        os.chdir(place)
        for name, text in program["files"].items():
            Path(name).write_text(text)
            sys.modules.pop(name.removesuffix(".py"), None)
        sys.path[:] = [str(place), *(entry for entry in sys.path if Path(entry).parent != folder)]
        done.append(run(program["code"], program["name"]))
    json.dump(done, sys.stdout)
