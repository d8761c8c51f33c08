"""What the tests of supervision and lifecycle share: the two kinds of actor, gates that hold a hook
or handler of either, and some actors.
"""

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import pytest

from offbook.runtime import Actor, ActorRef, OffbookError, ThreadActor


class Gate:
    """Holds whoever comes to it until it is opened; works across threads and loops.

    A cancellation gets through, and leaves the gate as it is.
    """

    def __init__(self) -> None:
        self._reached: Future[None] = Future()
        self._opened: Future[None] = Future()

    async def wait(self) -> None:
        """Wait in an asynchronous hook or handler."""
        self._arrive()
        await asyncio.shield(asyncio.wrap_future(self._opened))

    def block(self) -> None:
        """Wait in a thread."""
        self._arrive()
        self._opened.result(20)

    async def reached(self) -> None:
        """Wait until somebody has come."""
        await asyncio.wait_for(asyncio.shield(asyncio.wrap_future(self._reached)), 20)

    def is_reached(self) -> bool:
        return self._reached.done()

    def is_open(self) -> bool:
        return self._opened.done()

    def open(self) -> None:
        if not self._opened.done():
            self._opened.set_result(None)

    def _arrive(self) -> None:
        if not self._reached.done():
            self._reached.set_result(None)


@pytest.fixture
def gate() -> Gate:
    return Gate()


@pytest.fixture
def new_gate() -> Callable[[], Gate]:
    return Gate


@pytest.fixture(params=[Actor, ThreadActor], ids=["Actor", "ThreadActor"])
def kind(request: pytest.FixtureRequest) -> type[Actor]:
    """The base class of the actors of a test."""
    return request.param


class PhoenixMixin:
    """Numbers its instances, and writes down what happens to each. Fails on the message "fail"."""

    def __init__(self, log: list[str], **options: Any) -> None:
        super().__init__()
        self.log, self.options = log, options
        self.number = 1 + sum(entry.startswith("init") for entry in log)
        log.append(f"init {self.number}")

    def on_start(self) -> None:
        self.log.append(f"start {self.number}")

    def on_receive(self, message: Any) -> Any:
        if message == "fail":
            msg = f"of {self.number}"
            raise RuntimeError(msg)
        if message == "self":
            return self
        self.log.append(f"{message} {self.number}")
        return self.number

    def on_stop(self) -> None:
        self.log.append(f"stop {self.number}")

    def on_failure(self, kind: type, error: BaseException, traceback: Any) -> None:
        self.log.append(f"failure {self.number}: {kind.__name__} {error}")
        assert traceback is error.__traceback__


@pytest.fixture
def phoenix(kind: type[Actor]) -> type[Actor]:
    """An actor of that kind that numbers its instances."""
    return type("Phoenix", (PhoenixMixin, kind), {})


class Witness(Actor):
    """Watches the actors that it is given, and keeps the notices and everything else that it
    gets.
    """

    def __init__(self, seen: list[Any]) -> None:
        super().__init__()
        self.seen = seen

    def on_receive(self, message: Any) -> None:
        if isinstance(message, ActorRef):
            self.watch(message)
        else:
            self.seen.append(message)


@pytest.fixture
def witness() -> type[Actor]:
    """An actor on the loop that watches the actors that it is given, and keeps what it is sent."""
    return Witness


@pytest.fixture
def echo(kind: type[Actor]) -> type[Actor]:
    """An actor of that kind that sends back what it is sent."""

    class Echo(kind):
        def on_receive(self, message: Any) -> Any:
            return message

        def method(self) -> str:
            return self.actor_urn

    return Echo


@pytest.fixture
def says() -> Callable[..., None]:
    """Check that an error is one of the package's, and that its text has all of that in it."""

    def check(caught: pytest.ExceptionInfo[BaseException], *parts: str) -> None:
        text = str(caught.value)
        assert isinstance(caught.value, OffbookError)
        for part in parts:
            assert part in text, f"{part!r} is not in: {text}"

    return check


@pytest.fixture
def errors(caplog: pytest.LogCaptureFixture) -> Callable[[], list[str]]:
    """The error records that the package has logged so far."""
    return lambda: [
        record.getMessage()
        for record in caplog.records
        if record.name.startswith("offbook.") and record.levelno >= logging.ERROR
    ]


@pytest.fixture
def warnings(caplog: pytest.LogCaptureFixture) -> Callable[[], list[str]]:
    """The warnings that the package has logged so far."""
    return lambda: [
        record.getMessage()
        for record in caplog.records
        if record.name.startswith("offbook.") and record.levelno == logging.WARNING
    ]
