"""The same agent over many inputs: so many runs at once, each result as it comes.

Owns: which inputs are under way, and the order in which results are handed out. No more inputs are read than `concurrency` runs, and the results that wait for
an earlier one, take; so memory stays flat over any number of them. It must never let a run outlive the iteration.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final, Generic, Literal, TypeVar

from ..data.run_result import RunResult, RunStatus
from ..errors import UsageError
from ..option_names import meant
from ..system.loop_door import LoopDoor
from .map_progress import MapProgress, ProgressLike, progress_of
from .run_options import RunOptions

if TYPE_CHECKING:
    from ..data.chat import Message
    from ..system.system import ActorSystem
    from .run import Run

__all__ = ["MapResult", "MapSettings", "RunMap", "map_of"]

T = TypeVar("T")

_OWN: Final = ("ask", "key", "concurrency", "progress", "on_error", "order")
_AHEAD: Final = 4
"""So many times `concurrency` inputs may be under way or done, while the first of them is not handed out."""


@dataclass(frozen=True, slots=True)
class MapResult(Generic[T]):
    """What came of one input. `result` is None if its run could not be made: `error` says why."""

    index: int
    input: T
    key: str | None
    result: RunResult | None
    error: Exception | None = None

    @property
    def ok(self) -> bool:
        """Whether the run has completed."""
        return self.result is not None and self.result.status is RunStatus.COMPLETED

    @property
    def text(self) -> str:
        """The run's answer. Raises what it failed with."""
        if self.result is None:
            assert self.error is not None
            raise self.error
        return self.result.text


@dataclass(frozen=True, slots=True)
class MapSettings(Generic[T]):
    """How inputs are worked on."""

    start: Callable[[T, str | None], Run]
    key: Callable[[T], str] | None
    concurrency: int
    on_error: Literal["collect", "raise"]
    order: Literal["completion", "input"]
    progress: ProgressLike


class RunMap(Generic[T]):
    """What `runner.map(...)` returns: iterate over it once, with `async for`, or with `for` where no event loop is running.

    Leaving the iteration, or Ctrl-C, ends what is under way. With a `key` and a store, a second call has the results of the runs that had ended, and makes the
    others.
    """

    def __init__(self, inputs: Iterable[T] | AsyncIterable[T], settings: MapSettings[T], choose_system: Callable[[], ActorSystem]) -> None:
        self._inputs = inputs
        self._settings = settings
        self._choose_system = choose_system
        self._iterated = False

    def __aiter__(self) -> AsyncIterator[MapResult[T]]:
        return self._results()

    def __iter__(self) -> Iterator[MapResult[T]]:
        door = LoopDoor(self._choose_system(), "runner.map()")
        results = self._results()
        try:
            while (found := door.block(partial(_next, results), "for result in runner.map(...)", "async for result in runner.map(...)")) is not None:
                yield found
        finally:
            door.block(results.aclose, "for result in runner.map(...)", "async for result in runner.map(...)")

    async def _results(self) -> AsyncGenerator[MapResult[T], None]:
        if self._iterated:
            msg = "runner.map(...) is iterated over once: call map() again. With key= and a store, what is done already is not done again."
            raise UsageError(msg)
        self._iterated = True
        settings = self._settings
        total = len(self._inputs) if isinstance(self._inputs, Sized) else None
        shown = progress_of(settings.progress)
        waiting: dict[asyncio.Task[MapResult[T]], int] = {}
        ready: dict[int, MapResult[T]] = {}
        inputs = _numbered(self._inputs)
        more, done, failed, following = True, 0, 0, 0
        try:
            with shown:
                while more or waiting:
                    while more and len(waiting) < settings.concurrency and len(waiting) + len(ready) < _AHEAD * settings.concurrency:
                        found = await anext(inputs, None)
                        more = found is not None
                        if found is not None:
                            waiting[asyncio.ensure_future(self._one(*found))] = found[0]
                    if not waiting:
                        break
                    ended, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                    for task in sorted(ended, key=waiting.__getitem__):
                        del waiting[task]
                        result = task.result()
                        ready[result.index] = result
                        done, failed = done + 1, failed + (not result.ok)
                        shown.show(MapProgress(done, failed, total))
                    for index in sorted(ready):
                        if settings.order == "completion" or index == following:
                            following += 1
                            yield self._checked(ready.pop(index))
        finally:
            for task in waiting:
                task.cancel()
            if waiting:
                await asyncio.wait(waiting)
            await inputs.aclose()

    def _checked(self, result: MapResult[T]) -> MapResult[T]:
        if self._settings.on_error == "raise":
            if result.error is not None:
                raise result.error
            assert result.result is not None
            result.result.raise_for_error()
        return result

    async def _one(self, index: int, given: T) -> MapResult[T]:
        """One run. What is wrong with its input is told of that input."""
        settings = self._settings
        key: str | None = None
        try:
            if settings.key is not None:
                key = settings.key(given)
            return MapResult(index, given, key, await settings.start(given, key))
        except Exception as error:  # noqa: BLE001 -- it is in the result, or raised where that is handed out
            return MapResult(index, given, key, None, error)


def map_of(
    run: Callable[..., Run],
    inputs: Iterable[T] | AsyncIterable[T],
    ask: Callable[[T], str | Message | Sequence[Message]] | None,
    options: RunOptions,
    key: Callable[[T], str] | None,
    concurrency: int,
    progress: ProgressLike,
    on_error: Literal["collect", "raise"],
    order: Literal["completion", "input"],
    choose_system: Callable[[], ActorSystem],
    has_store: bool,  # noqa: FBT001 -- the last of what the Runner hands on
) -> RunMap[T]:
    """What `Runner.map` returns. Raises `UsageError` for what is wrong before the first run."""
    if isinstance(inputs, str | bytes | Mapping) or not isinstance(inputs, Iterable | AsyncIterable):
        msg = f"map({inputs!r}): give several inputs: a list, or anything that is iterated over."
        raise UsageError(msg)
    if not isinstance(concurrency, int) or concurrency < 1:
        msg = f"map(concurrency={concurrency!r}): give how many runs may be under way at once, 1 or more."
        raise UsageError(msg)
    for name, given, known in (("on_error", on_error, ("collect", "raise")), ("order", order, ("completion", "input"))):
        if given not in known:
            msg = f"map({name}={given!r}): give {known[0]!r} or {known[1]!r}."
            raise UsageError(msg)
    for name, function in (("key", key), ("ask", ask)):
        if function is not None and not callable(function):
            msg = f"map({name}={function!r}): give a function of an input."
            raise UsageError(msg)
    if key is not None and not has_store:
        msg = "map(key=...): what is done already is looked up in a store: give the Runner one, or leave key= out."
        raise UsageError(msg)
    if taken := sorted({"run_id", "checkpoint_id", "detached"} & options.keys()):
        msg = f"map({taken[0]}=...): that is of one run. To name the runs, give key=, a function of an input."
        raise UsageError(msg)

    def start(given: T, run_id: str | None) -> Run:
        asked: object = given if ask is None else ask(given)
        return run(asked, **options) if run_id is None else run(asked, **options, run_id=run_id)

    if unknown := sorted(options.keys() - RunOptions.__annotations__.keys()):
        hint = meant(unknown[0], (*_OWN, *sorted(RunOptions.__annotations__)))
        msg = f"map({unknown[0]}=...): there is no such option. {hint} Beside its own, map takes those of `run`."
        raise UsageError(msg)
    progress_of(progress)
    return RunMap(inputs, MapSettings(start, key, concurrency, on_error, order, progress), choose_system)


async def _numbered(inputs: Iterable[T] | AsyncIterable[T]) -> AsyncGenerator[tuple[int, T], None]:
    index = 0
    if isinstance(inputs, AsyncIterable):
        async for given in inputs:
            yield index, given
            index += 1
    else:
        for given in inputs:
            yield index, given
            index += 1


async def _next(results: AsyncGenerator[MapResult[T], None]) -> MapResult[T] | None:
    return await anext(results, None)
