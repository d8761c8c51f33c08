"""The activity of a blocked loop's thread, sampled from another thread.

The sampler records the last place in the program's code where it saw the loop's thread. Its thread
exists only while actors are running, and samples a few times in each relevant span. It is a bare
thread, which starts in a tenth of the time, and runs none of the program's code. It never touches a
frame of another thread, because that can crash the interpreter.
"""

from __future__ import annotations

import _thread
import faulthandler
import os
import re
import sys
import threading
from time import perf_counter
from typing import IO, Final, NamedTuple, TypeAlias

__all__ = ["LoopSampler", "Place"]

_LINGERS: Final = 4
"""The thread ends after this many consecutive samples without activity."""

_LONGEST: Final = 1.0
"""The most seconds between two samples, even for a large limit."""

_HERE: Final = os.path.dirname(os.path.dirname(os.path.dirname(__file__)))  # noqa: PTH120 -- pathlib would have to be imported
_OURS: Final = tuple(os.path.join(_HERE, room, "") for room in ("actors", "runtime"))  # noqa: PTH118 -- see above
_STANDARD: Final = (os.path.join(os.path.dirname(os.__file__), ""), "<frozen")  # noqa: PTH118, PTH120 -- see above
_LOOPS: Final = (
    "asyncio/base_events.py",
    "asyncio/runners.py",
    "asyncio/events.py",
    "selectors.py",
)

_Call: TypeAlias = tuple[str, int, str]
"""The file, the line and the function."""

_LINE: Final = re.compile(r'  File "(.*)", line (\d+) in (.*)')

_ADVICE: Final = (
    (
        "actors/tools/",
        (
            "If a tool must block, make it a plain `def`, which runs in its own thread. An "
            "`async def` must never block."
        ),
    ),
    (
        "actors/guardrail.py",
        (
            "A guardrail runs on the loop. Await in it, or run blocking code in a thread with "
            "`await asyncio.to_thread(...)`."
        ),
    ),
    (
        "runtime/agent/hooks.py",
        (
            "A hook runs on the loop. Make it `async def` and await in it, or run blocking code "
            "in a thread with `await asyncio.to_thread(...)`."
        ),
    ),
    (
        "actors/chat_agent/model_call.py",
        (
            "An instruction, a middleware or a modifier of messages runs on the loop. Make it "
            "`async def`, and await in it."
        ),
    ),
    (
        "runtime/models/",
        (
            "A model runs on the loop. Use an asynchronous client, or run blocking code in a "
            "thread with `await asyncio.to_thread(...)`."
        ),
    ),
    (
        "runtime/durability/",
        (
            "A store whose methods are plain functions runs on the loop. Make them `async def`, "
            "and run blocking code in a thread."
        ),
    ),
)


class Place(NamedTuple):
    """The thread's place in the code."""

    at: float
    function: str
    """The innermost function of the program's own code.

    If there is none, of a library's code, or of this package's.
    """
    file: str
    line: int
    called: str
    """The library function that it has called, if any."""
    advice: str | None
    """The advice for this kind of code, if known."""

    def __str__(self) -> str:
        called = f", in its call of {self.called}" if self.called else ""
        return f"{self.function} ({self.file}:{self.line}){called}"


class LoopSampler:
    """Samples one thread, while it is notified regularly of activity there."""

    __slots__ = ("_ident", "_is_there", "_is_wanted", "_seconds", "_wake", "last")

    def __init__(self, slow_after: float) -> None:
        self._seconds = min(slow_after / 2, _LONGEST)
        self._ident = 0
        self._is_there = False  # True if the thread was started, and has not ended
        self._is_wanted = False
        self._wake = threading.Event()  # set when it must end at once
        self.last: Place | None = None

    def at_work(self) -> None:
        """Note that work starts on the loop. In its thread, a few times a second."""
        self._is_wanted = True
        if not self._is_there and self._seconds > 0:
            self._ident = threading.get_ident()
            self._wake = threading.Event()
            self._is_there = True
            try:
                _thread.start_new_thread(self._look_on, (self._wake,))
            except RuntimeError:
                # The interpreter is ending, or no more threads can be created: then nothing is
                # sampled.
                self._is_there = False

    def stop(self) -> None:
        """End the thread at once, without waiting for it."""
        if self._is_there:
            self._wake.set()
            self._is_there = False

    def seen_since(self, started: float) -> Place | None:
        """Return the last sampled place, if it is more recent than `started`."""
        last = self.last
        return last if last is not None and last.at >= started else None

    def _look_on(self, wake: threading.Event) -> None:
        idle = 0
        while idle < _LINGERS and not wake.wait(self._seconds):
            idle = 0 if self._is_wanted else idle + 1
            self._is_wanted = False
            try:
                place = _place_of(_calls_of(self._ident))
            except OSError:
                place = None  # no more files can be opened: then nothing is sampled
            if place is not None:
                self.last, idle = place, 0
        if not wake.is_set():
            self._is_there = False


def _scratch() -> IO[bytes]:
    """Return a temporary file."""
    if sys.platform == "linux":
        return os.fdopen(os.memfd_create("stacks"), "w+b")
    import tempfile  # noqa: PLC0415 -- imports much

    return tempfile.TemporaryFile()


def _calls_of(thread: int) -> list[_Call]:
    """Return the calls of a thread, innermost first.

    The interpreter dumps them atomically: no other thread takes a step meanwhile. Frames contain
    more information, but following the frames of a running thread can crash the interpreter.
    """
    with _scratch() as file:
        faulthandler.dump_traceback(file, all_threads=True)
        file.seek(0)
        lines = file.read().decode("utf-8", "replace").splitlines()
    calls: list[_Call] = []
    is_there = False
    for line in lines:
        if (call := _LINE.match(line)) is None:
            is_there = f"hread 0x{thread:016x}" in line
        elif is_there:
            calls.append((call[1], int(call[2]), call[3]))
    return calls


def _place_of(calls: list[_Call]) -> Place | None:
    """Return the innermost call of the program's code, or of a library's, or of this package's.

    None: the loop waits.
    """
    own: tuple[_Call, str] | None = None
    library: tuple[_Call, str] | None = None
    ours: _Call | None = None
    caller, called, is_in_loop = "", "", False
    for call in calls:
        file = call[0]
        if file.endswith(_LOOPS):
            is_in_loop = True
            break
        if file.startswith(_OURS):
            ours = ours or call
            if own is not None or library is not None:
                # the module of this package that called it
                caller = caller or file[len(_HERE) + 1 :]
        elif file.startswith(_STANDARD) or "site-packages" in file:
            if not file.startswith(_STANDARD):
                library = library or (call, called)
        else:
            own = own or (call, called)
        called = called or call[2]
    found, through = own or library or (ours, "")
    if not is_in_loop or found is None:
        return None
    advice = next((text for start, text in _ADVICE if caller.startswith(start)), None)
    return Place(perf_counter(), found[2], found[0], found[1], through, advice)
