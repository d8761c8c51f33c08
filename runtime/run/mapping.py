"""One agent over many inputs: several runs at once, each result as it arrives.

Inputs are read only as fast as `concurrency` and the results waiting for an earlier one allow, so
memory stays flat for any number of inputs. No run outlives the iteration.
"""

from __future__ import annotations

import asyncio
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
    Sized,
)
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final, Generic, Literal, TypeVar

from ..data.output_type import OutputT_co
from ..data.run_result import RunResult, RunStatus
from ..errors import UsageError
from ..option_names import meant
from ..system.loop_bridge import LoopBridge
from ..tasks import start_task
from .map_progress import MapProgress, ProgressLike, progress_of
from .run import was_followed
from .run_options import RunOptions

if TYPE_CHECKING:
    from ..data.chat import Message
    from ..system.system import ActorSystem
    from .run import Run

__all__ = ["MapResult", "MapSettings", "RunMap", "map_of"]

T = TypeVar("T")

_FAILED: Final = (RunStatus.FAILED, RunStatus.CANCELLED, RunStatus.STUCK)
_OWN: Final = ("ask", "key", "concurrency", "progress", "on_error", "order", "retry_failed")
_AHEAD: Final = 4
"""The most inputs in progress or done while an earlier result is missing, per `concurrency`."""


@dataclass(frozen=True, slots=True)
class MapResult(Generic[T, OutputT_co]):
    """The result for one input.

    `error` is what the run failed with or was cancelled by, or why it could not be created; in the
    last case `result` is None. `text` and `final_output` are the answer, and reading them raises
    `error` if there is one.
    """

    index: int
    input: T
    key: str | None
    result: RunResult[OutputT_co] | None
    error: Exception | None = None

    @property
    def ok(self) -> bool:
        """True if the run has completed."""
        return self.result is not None and self.result.status is RunStatus.COMPLETED

    @property
    def text(self) -> str:
        """The text of the run's answer. Raises `error`, if there is one."""
        return self._answered.text

    @property
    def final_output(self) -> OutputT_co:
        """The run's answer: an object of the `output_type`, or a string.

        Raises `error`, if there is one.
        """
        return self._answered.final_output

    @property
    def _answered(self) -> RunResult[OutputT_co]:
        if self.error is not None:
            raise self.error
        assert self.result is not None
        return self.result


@dataclass(frozen=True, slots=True)
class MapSettings(Generic[T, OutputT_co]):
    """The settings of a mapping."""

    start: Callable[[T, str | None], Run[OutputT_co]]
    forget_failed: Callable[[str], Awaitable[bool]] | None
    """Removes a failed run so that it can be started again. None: failed runs stay failed."""
    key: Callable[[T], str] | None
    concurrency: int
    on_error: Literal["collect", "raise"]
    order: Literal["completion", "input"]
    progress: ProgressLike


class RunMap(Generic[T, OutputT_co]):
    """The iterable that `runner.map(...)` returns: iterate over it once.

    Use `async for`, or `for` where no event loop is running. Leaving the iteration, or Ctrl-C, ends
    the running runs. With a `key` and a store, a second call returns the stored results and runs
    the rest.
    """

    def __init__(
        self,
        inputs: Iterable[T] | AsyncIterable[T],
        settings: MapSettings[T, OutputT_co],
        choose_system: Callable[[], ActorSystem],
    ) -> None:
        self._inputs = inputs
        self._settings = settings
        self._choose_system = choose_system
        self._iterated = False

    def __aiter__(self) -> AsyncIterator[MapResult[T, OutputT_co]]:
        return self._results()

    def __iter__(self) -> Iterator[MapResult[T, OutputT_co]]:
        bridge = LoopBridge(self._choose_system(), "runner.map()")
        results = self._results()
        try:
            while (
                found := bridge.block(
                    partial(_next, results),
                    "for result in runner.map(...)",
                    "async for result in runner.map(...)",
                )
            ) is not None:
                yield found
        finally:
            bridge.block(
                results.aclose,
                "for result in runner.map(...)",
                "async for result in runner.map(...)",
            )

    async def _results(self) -> AsyncGenerator[MapResult[T, OutputT_co], None]:
        if self._iterated:
            msg = (
                "runner.map(...) can be iterated once only. Call map() again: with key= and a "
                "store, it skips the inputs that are done."
            )
            raise UsageError(msg)
        self._iterated = True
        settings = self._settings
        total = len(self._inputs) if isinstance(self._inputs, Sized) else None
        shown = progress_of(settings.progress)
        waiting: dict[asyncio.Task[MapResult[T, OutputT_co]], int] = {}
        ready: dict[int, MapResult[T, OutputT_co]] = {}
        inputs = _numbered(self._inputs)
        more, done, failed, following = True, 0, 0, 0
        try:
            with shown:
                while more or waiting:
                    while (
                        more
                        and len(waiting) < settings.concurrency
                        and len(waiting) + len(ready) < _AHEAD * settings.concurrency
                    ):
                        found = await anext(inputs, None)
                        more = found is not None
                        if found is not None:
                            waiting[start_task(self._one(*found), "a run of a batch")] = found[0]
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

    def _checked(self, result: MapResult[T, OutputT_co]) -> MapResult[T, OutputT_co]:
        if self._settings.on_error == "raise" and result.error is not None:
            raise result.error
        return result

    async def _one(self, index: int, given: T) -> MapResult[T, OutputT_co]:
        """Run one input. An error in the input becomes that input's result."""
        settings = self._settings
        key: str | None = None
        try:
            if settings.key is not None:
                key = settings.key(given)
            run = settings.start(given, key)
            result = await run
            if (
                key is not None
                and settings.forget_failed is not None
                and was_followed(run)
                and result.status in _FAILED
                and await settings.forget_failed(key)
            ):
                result = await settings.start(given, key)
            return MapResult(index, given, key, result, result.error)
        except Exception as error:  # noqa: BLE001 -- returned in the result, or raised where that is taken
            return MapResult(index, given, key, None, error)


def map_of(
    run: Callable[..., Run[OutputT_co]],
    inputs: Iterable[T] | AsyncIterable[T],
    ask: Callable[[T], str | Message | Sequence[Message]] | None,
    options: RunOptions,
    key: Callable[[T], str] | None,
    concurrency: int,
    progress: ProgressLike,
    on_error: Literal["collect", "raise"],
    order: Literal["completion", "input"],
    choose_system: Callable[[], ActorSystem],
    has_store: bool,  # noqa: FBT001 -- forwarded from the Runner
    forget_failed: Callable[[str], Awaitable[bool]] | None,
) -> RunMap[T, OutputT_co]:
    """Build the result of `Runner.map`.

    Raises `UsageError` for wrong arguments before the first run.
    """
    if isinstance(inputs, str | bytes | Mapping) or not isinstance(
        inputs, Iterable | AsyncIterable
    ):
        msg = f"map: inputs must be a list or another iterable of inputs, got {inputs!r}."
        raise UsageError(msg)
    if not isinstance(concurrency, int) or concurrency < 1:
        msg = (
            "map: concurrency must be the number of concurrent runs, 1 or more, got "
            f"{concurrency!r}."
        )
        raise UsageError(msg)
    for name, given, known in (
        ("on_error", on_error, ("collect", "raise")),
        ("order", order, ("completion", "input")),
    ):
        if given not in known:
            msg = f"map: {name} must be {known[0]!r} or {known[1]!r}, got {given!r}."
            raise UsageError(msg)
    for name, function in (("key", key), ("ask", ask)):
        if function is not None and not callable(function):
            msg = f"map: {name} must be a function of an input, got {function!r}."
            raise UsageError(msg)
    if key is not None and not has_store:
        msg = (
            "map(): key needs a store, which records the finished runs. Pass the Runner one, or "
            "leave key= out."
        )
        raise UsageError(msg)
    if forget_failed is not None and key is None:
        msg = (
            "map(retry_failed=True): retry_failed needs keys to find the inputs that failed "
            "before. Pass key=, a function of an input."
        )
        raise UsageError(msg)
    if taken := sorted({"run_id", "checkpoint_id", "detached"} & options.keys()):
        msg = (
            f"map: {taken[0]}= applies to a single run. To name the runs, pass key=, a "
            "function of an input."
        )
        raise UsageError(msg)

    def start(given: T, run_id: str | None) -> Run[OutputT_co]:
        asked: object = given if ask is None else ask(given)
        return run(asked, **options) if run_id is None else run(asked, **options, run_id=run_id)

    if unknown := sorted(options.keys() - RunOptions.__annotations__.keys()):
        hint = meant(unknown[0], (*_OWN, *sorted(RunOptions.__annotations__)))
        msg = f"map: unknown option {unknown[0]!r}. {hint} map also takes the options of `run`."
        raise UsageError(msg)
    progress_of(progress)
    return RunMap(
        inputs,
        MapSettings(start, forget_failed, key, concurrency, on_error, order, progress),
        choose_system,
    )


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


async def _next(
    results: AsyncGenerator[MapResult[T, OutputT_co], None],
) -> MapResult[T, OutputT_co] | None:
    return await anext(results, None)
