"""What has been measured: a file with a line of JSON for each round.

A run that was stopped, and is started again, goes on behind the last line.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

__all__ = ["Book", "OtherRun"]


class OtherRun(ValueError):
    """The file is of a run with other options, whose rounds must not be mixed with these."""


class Book:
    """The rounds by workload and contender, in their order.

    A round that failed is kept for its reason, and tried again by the next run.
    """

    def __init__(self, path: Path, header: dict[str, Any]) -> None:
        self.path = path
        self.rounds: dict[tuple[str, str], list[dict[str, Any]]] = {}
        self.failed: dict[tuple[str, str], str] = {}
        if path.exists():
            self._read(header)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._write({"header": header})

    def _read(self, header: dict[str, Any]) -> None:
        text = self.path.read_text(encoding="utf-8")
        whole, _, torn = text.rpartition("\n")
        if torn:  # the process was killed in the middle of a line
            self.path.write_text(whole + "\n" if whole else "", encoding="utf-8")
        lines = [json.loads(line) for line in whole.splitlines()]
        if not lines:
            self._write({"header": header})
            return
        if lines[0].get("header") != header:
            differ = sorted(
                key
                for key in {*header, *lines[0].get("header", {})}
                if lines[0].get("header", {}).get(key) != header.get(key)
            )
            msg = (
                f"{self.path} has the rounds of another run: {', '.join(differ)} differ. Give "
                "--fresh to begin anew, or another --output."
            )
            raise OtherRun(msg)
        for line in lines[1:]:
            self._take(line)

    def _take(self, line: dict[str, Any]) -> None:
        key = (line["workload"], line["contender"])
        if "failed" in line:
            self.failed[key] = line["failed"]
        else:
            self.rounds.setdefault(key, []).append(line["figures"])
            self.failed.pop(key, None)

    def _write(self, line: dict[str, Any]) -> None:
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line, ensure_ascii=False) + "\n")

    def add(self, workload: str, contender: str, figures: dict[str, Any]) -> None:
        line = {"workload": workload, "contender": contender, "figures": figures}
        self._write(line)
        self._take(line)

    def fail(self, workload: str, contender: str, reason: str) -> None:
        line = {"workload": workload, "contender": contender, "failed": reason}
        self._write(line)
        self._take(line)

    def done(self, workload: str, contender: str) -> int:
        return len(self.rounds.get((workload, contender), ()))
