"""Runs programs one after the other as the main module, each in an empty folder: python -W error
run_page.py FOLDER < programs.json

Says what each has printed, and how it ended, as JSON. Each finds the modules of its page beside it.
A program must find nothing of the one before: neither files, nor names, nor its main module.
"""

import gc
import json
import linecache
import logging
import os
import re
import sys
import tempfile
import traceback
from pathlib import Path
from types import ModuleType
from typing import Self

FAILED = re.compile(r"Run \S+ of .+ has failed")


class Warned(logging.StreamHandler):
    """Writes what the library warns of where Python would, but for runs that have failed: pages
    show such runs on purpose.
    """

    def emit(self, record: logging.LogRecord) -> None:
        if not FAILED.match(record.getMessage()):
            self.setStream(sys.stderr)
            super().emit(record)


class Written:
    """What is written to a file descriptor meanwhile, by processes that the program starts, too."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self.text = ""

    def __enter__(self) -> Self:
        self.file = tempfile.TemporaryFile()
        self.before = os.dup(self.descriptor)
        os.dup2(self.file.fileno(), self.descriptor)
        return self

    def __exit__(self, *_: object) -> None:
        sys.stdout.flush()
        sys.stderr.flush()
        os.dup2(self.before, self.descriptor)
        os.close(self.before)
        self.file.seek(0)
        self.text = self.file.read().decode()
        self.file.close()


def run(code: str, name: str) -> dict[str, object]:
    """Its output, what it has written to stderr, and its error, if it has one."""
    linecache.cache[name] = (
        len(code),
        None,
        code.splitlines(keepends=True),
        name,
    )  # for tracebacks, and for who asks for a function's source
    main = ModuleType("__main__")
    main.__dict__["__file__"] = name
    sys.modules["__main__"] = main
    logging.basicConfig(level=logging.WARNING, handlers=[], force=True)
    logging.getLogger("offbook").setLevel(logging.NOTSET)  # the root's: warnings
    error = None
    with Written(1) as out, Written(2) as err:
        try:
            exec(compile(code, name, "exec", dont_inherit=True), main.__dict__)
        except (Exception, SystemExit):
            error = traceback.format_exc()
        gc.collect()  # what was left open says so when it is collected
    return {"output": out.text, "stderr": err.text, "error": error}


if __name__ == "__main__":
    logging.getLogger("offbook").addHandler(Warned())
    sys.stdout.reconfigure(encoding="utf-8")
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
