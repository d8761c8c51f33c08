"""An agent as a service: a Runner with its system, store, recovery and pruning in one block.

The module starts and ends these parts in order, and handles SIGTERM if nothing else in the process
does. It only stops a system that it has started.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import partial
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any, Final, Generic, Never, TypeVar, Unpack, cast

from .actor.current import entered_system
from .data.output_type import OutputT_co
from .errors import UsageError
from .log import loggers
from .option_names import refuse_unknown, store_meant
from .run.recovery_loop import Repeating, check_interval
from .run.run_options import RunnerOptions
from .runner import Runner
from .system.loop_bridge import LoopBridge, refuse_on_a_loop
from .system.system import ActorSystem

if TYPE_CHECKING:
    from .agent.tree import Definition
    from .run.recovery_loop import RecoveryLoop
    from .stores import JournalStore
    from .system.threaded import ThreadedSystem

__all__ = ["Service", "service"]

OutputT = TypeVar("OutputT")

_NAME: Final = "service"
_EXIT_CODE: Final = 128 + signal.SIGTERM
_using: Final[dict[int, int]] = {}
"""The number of services in this process that use a store, by its identity: the last one closes it.
"""
_using_lock: Final = threading.Lock()


def service(
    agent: Definition[OutputT],
    *,
    store: JournalStore,
    recover_every: float = 30.0,
    prune_every: float | None = 3600.0,
    drain_timeout: float = 10.0,
    **runner_options: Unpack[RunnerOptions],
) -> Service[OutputT]:
    """Return a block that sets up and tears down everything around a service's Runner.

        async with service(agent, store=SQLiteStore("runs.db")) as runner: ...

    Entering the block opens the store, starts an `ActorSystem` or uses the one on this loop, and
    creates a `Runner`, with `durability="step"` unless `runner_options` override it. The service
    then continues the runs of crashed processes, at once and every `recover_every` seconds, and
    prunes the store every `prune_every` seconds (None: never). Leaving the block drains the runs
    for at most `drain_timeout` seconds, stops the system, and closes the store unless another
    service uses it. A system that already existed is drained and stopped by its owner.

    SIGTERM ends the block, and then the process with exit code 143, unless the program or its
    server handles that signal itself.

    The system that the service starts paces Python's full garbage collections:
    `ActorSystem(full_collections="paced")`.

    In a program without an event loop, use `with service(...) as runner:` and `runner.blocking`.
    The system then has its own thread.
    """
    if store is None or isinstance(store, str):
        msg = (
            f"service(store={store!r:.80}): store must be a store. Pass "
            f"{store_meant(store or 'runs.db')}."
        )
        raise UsageError(msg)
    check_interval("service(recover_every=...)", recover_every)
    if prune_every is not None:
        check_interval("service(prune_every=...)", prune_every)
    if (
        isinstance(drain_timeout, bool)
        or not isinstance(drain_timeout, int | float)
        or not drain_timeout >= 0
    ):
        msg = (
            f"service(drain_timeout={drain_timeout!r:.80}): drain_timeout must be a number of "
            "seconds, 0 or more."
        )
        raise UsageError(msg)
    refuse_unknown(
        "service",
        runner_options,
        (*RunnerOptions.__annotations__, "store", "recover_every", "prune_every", "drain_timeout"),
    )
    runner_options.setdefault("durability", "step")
    # So that wrong options fail here, and not when the service starts.
    Runner(agent, store=store, **runner_options)
    return Service(agent, store, recover_every, prune_every, drain_timeout, runner_options)


class Service(Generic[OutputT_co]):
    """The result of `service()`: a block, asynchronous or not, that returns the `Runner`."""

    def __init__(
        self,
        agent: Definition[OutputT_co],
        store: JournalStore,
        recover_every: float,
        prune_every: float | None,
        drain_timeout: float,
        runner_options: RunnerOptions,
    ) -> None:
        self._agent = agent
        self._store = store
        self._recover_every = recover_every
        self._prune_every = prune_every
        self._drain_timeout = drain_timeout
        self._options = runner_options
        self._runner: Runner[OutputT_co] | None = None
        self._system: ActorSystem | None = None
        self._owned: ActorSystem | None = None  # the system, if it was started here
        self._threaded: ThreadedSystem | None = None  # the system's thread, if it has one
        self._recovery: RecoveryLoop | None = None
        self._pruning: Repeating | None = None
        self._process = 0
        self._task: asyncio.Task[Any] | None = None  # the task of the block
        self._sigterm = _Sigterm()
        # Ends the service after SIGTERM if its block's task has ended.
        self._ending: asyncio.Task[None] | None = None

    def __repr__(self) -> str:
        return f"<Service of {self._agent!r}{'' if self._system is None else ', running'}>"

    @property
    def runner(self) -> Runner[OutputT_co]:
        """The Runner that entering the service returned.

        Raises if the service is not entered, also in a process that was forked since.
        """
        if self._runner is None or self._process != os.getpid():
            msg = (
                f"{self!r} has not been entered in this process. Enter it first with `async "
                "with`, `with` or open()."
            )
            raise UsageError(msg)
        return self._runner

    def __getattr__(self, name: str) -> Never:
        if not name.startswith("_") and hasattr(Runner, name):
            msg = (
                f"a Service has no {name!r}, but its Runner has. Write `async with service(...) as "
                f"runner:`, and runner.{name}."
            )
        else:
            msg = f"{type(self).__name__!r} object has no attribute {name!r}"
        raise AttributeError(msg, name=name, obj=self)

    # --- on an event loop ---

    async def __aenter__(self) -> Runner[OutputT_co]:
        self._refuse_twice()
        loop = asyncio.get_running_loop()
        system = cast("ActorSystem | None", entered_system(loop))
        if system is None:
            system = self._owned = ActorSystem(_NAME, full_collections="paced")
            await system.start()
        self._enter(system)
        try:
            runner = await self._begin(system)
        except BaseException:
            await self._end_here(drain=False)
            raise
        self._task = asyncio.current_task()
        self._sigterm.install(partial(loop.call_soon_threadsafe, self._end_block))
        return runner

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._ending is not None:
            await asyncio.shield(self._ending)
        elif self._system is not None:
            await self._end_here()
        self._sigterm.exit_if_received()

    def _end_block(self) -> None:
        """End the block after SIGTERM.

        If its task has ended, because an exit stack entered the service, end the service and the
        process.
        """
        task = self._task
        if task is not None and not task.done():
            self._leave_runs_to_the_drain()
            task.cancel("the process received SIGTERM")
        elif self._ending is None:
            self._ending = asyncio.get_running_loop().create_task(self._end_process())

    async def _end_process(self) -> None:
        try:
            await self._end_here()
        finally:
            signal.raise_signal(signal.SIGTERM)

    async def _end_here(self, *, drain: bool = True) -> None:
        self._sigterm.remove()
        owned = self._owned
        with _shielded():
            try:
                await self._rest(drain=drain)
            finally:
                try:
                    if owned is not None:
                        await owned.stop()
                finally:
                    self._leave()
                    if self._lets_go():
                        await self._store.aclose()

    # --- without an event loop ---

    def __enter__(self) -> Runner[OutputT_co]:
        refuse_on_a_loop("with service(...)", "async with service(...)")
        self._refuse_twice()
        self._threaded = ActorSystem.in_thread(_NAME, full_collections="paced")
        system = self._owned = self._threaded.open()
        self._enter(system)
        try:
            runner = LoopBridge(system, "service()").block(
                partial(self._begin, system), "with service(...)", "async with service(...)"
            )
            assert runner is not None
        except BaseException:
            self._close(drain=False)
            raise
        self._sigterm.install(self._exit)
        return runner

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _exit(self) -> None:
        self._leave_runs_to_the_drain()
        _exit()

    def open(self) -> Runner[OutputT_co]:
        """Enter the service for the rest of the process, in a program without a loop or a block.

        It is closed at the end of the process. In a server that forks, call it in each worker,
        after the fork.
        """
        runner = self.__enter__()
        atexit.register(self.close)
        return runner

    def close(self) -> None:
        """Leave the service, like the end of the `with` block."""
        if self._process == os.getpid():  # a forked process has none of it
            atexit.unregister(self.close)
            self._close(drain=True)

    def _close(self, *, drain: bool) -> None:
        self._sigterm.remove()
        threaded, system = self._threaded, self._owned
        assert threaded is not None
        assert system is not None
        try:
            LoopBridge(system, "service()").block(
                partial(self._rest, drain=drain), "service.close()", "async with service(...)"
            )
        finally:
            threaded.close()
            self._leave()
            if self._lets_go():
                self._store.close() if hasattr(self._store, "close") else asyncio.run(
                    _closed(self._store)
                )

    # --- shared ---

    def _refuse_twice(self) -> None:
        if self._process == os.getpid():
            msg = f"{self!r} has been entered already. Use the Runner that entering it returned."
            raise UsageError(msg)

    def _enter(self, system: ActorSystem) -> None:
        self._system, self._process = system, os.getpid()
        with _using_lock:
            _using[id(self._store)] = _using.get(id(self._store), 0) + 1

    def _leave_runs_to_the_drain(self) -> None:
        """Prepare the runs for the end of the block.

        Even a run that the block awaits then pauses once its running tools finish.
        """
        if self._owned is not None:
            self._owned.refuse_roots()

    def _leave(self) -> None:
        self._runner = self._system = self._owned = self._threaded = self._recovery = (
            self._pruning
        ) = self._task = None
        self._process = 0

    def _lets_go(self) -> bool:
        """Release the store. Returns True if this was the last service that used it."""
        with _using_lock:
            left = _using.pop(id(self._store)) - 1
            if left:
                _using[id(self._store)] = left
        return not left and hasattr(self._store, "aclose")

    async def _begin(self, system: ActorSystem) -> Runner[OutputT_co]:
        """Create the Runner and start its recovery. On the system's loop."""
        runner = self._runner = Runner(
            self._agent, system=system, store=self._store, **self._options
        )
        # A store that cannot be opened fails here, and not at the first request.
        await self._store.get("ready")
        self._recovery = runner.recover_every(self._recover_every)
        if self._prune_every is not None and hasattr(self._store, "run_entries"):
            self._pruning = Repeating(
                system,
                runner.prune,
                self._prune_every,
                "The store could not be pruned",
                at_once=False,
            )
        return runner

    async def _rest(self, *, drain: bool) -> None:
        """Stop recovering, and pause the runs. On the system's loop."""
        stopped = [
            repeating.stop()
            for repeating in (self._recovery, self._pruning)
            if repeating is not None
        ]
        owned = self._owned
        if owned is None:  # the system stays, and must not use a closed store
            for one in stopped:
                with suppress(TimeoutError):
                    await asyncio.wait_for(one, self._drain_timeout)
        elif drain and owned.is_running:
            report = await owned.drain(self._drain_timeout)
            if not report.drained:
                loggers.runner.warning(
                    "After %g s, these runs have not reached a safe point, and are ended: %s",
                    self._drain_timeout,
                    ", ".join(report.busy),
                )


def _shielded() -> AbstractContextManager[object]:
    """Shield the awaits at the end of a service from an anyio scope, if there is one.

    A scope's cancellation is not a single event: it cancels each `await` until the scope is left.
    """
    anyio = sys.modules.get("anyio")
    return nullcontext() if anyio is None else anyio.CancelScope(shield=True)


async def _closed(store: JournalStore) -> None:
    await store.aclose()


def _exit() -> None:
    raise SystemExit(_EXIT_CODE)


class _Sigterm:
    """The SIGTERM handler, for a process without another one."""

    def __init__(self) -> None:
        self._end: Callable[[], object] | None = None
        self._received = False

    def install(self, end: Callable[[], object]) -> None:
        """Call `end` when the signal arrives.

        Does nothing outside the main thread, where no handler can be set, or if there is a handler.
        """
        self._received = False
        if (
            threading.current_thread() is threading.main_thread()
            and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
        ):
            signal.signal(signal.SIGTERM, self._receive)
            self._end = end

    def _receive(self, _number: int, _frame: FrameType | None) -> None:
        end = self._end
        self.remove()  # a second signal ends the process at once
        self._received = True
        if end is not None:
            end()

    def remove(self) -> None:
        """Stop handling the signal."""
        if self._end is not None:
            self._end = None
            if signal.getsignal(signal.SIGTERM) == self._receive:
                # Not in the main thread: the handler has no effect any more.
                with suppress(ValueError):
                    signal.signal(signal.SIGTERM, signal.SIG_DFL)

    def exit_if_received(self) -> None:
        """End the process if the signal is why the block ended."""
        if self._received:
            self._received = False
            # From the loop itself, because this task may be in a group, which would report it.
            asyncio.get_running_loop().call_soon(_exit)
