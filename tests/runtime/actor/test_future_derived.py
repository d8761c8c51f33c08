"""Futures made of futures: map, filter, reduce and join, read in a thread as pykka has it, and
awaited as it has not.
"""

import asyncio
import threading
from collections.abc import Callable

import pykka
import pytest

from offbook.runtime import ActorFuture, AskTimeout, UsageError

WATCHDOG = 10.0


class Oops(Exception):
    pass


def of(value: object) -> ActorFuture:
    future: ActorFuture = ActorFuture()
    future.set(value)
    return future


async def _awaited(future: ActorFuture) -> object:
    return await future


def blocking(future: ActorFuture) -> object:
    return future.get(timeout=WATCHDOG)


def awaiting(future: ActorFuture) -> object:
    return asyncio.run(_awaited(future))


both_ways = pytest.mark.parametrize("read", [blocking, awaiting])


DERIVED: dict[str, tuple[Callable[[], ActorFuture], object]] = {
    "map": (lambda: of(30).map(lambda number: number + 10), 40),
    "map of a list": (lambda: of([1, 2]).map(len), 2),
    "map of a map": (lambda: of(1).map(str).map(lambda text: text * 3), "111"),
    "filter": (lambda: of(range(5, 15)).filter(lambda number: number > 10), [11, 12, 13, 14]),
    "reduce": (lambda: of(["a", "b", "c"]).reduce(lambda x, y: x + y), "abc"),
    "reduce with an initial value": (lambda: of([1, 2, 3]).reduce(lambda x, y: x + y, 5), 11),
    "reduce of nothing": (lambda: of([]).reduce(lambda x, y: x + y, 5), 5),
    "join": (lambda: of("abc").join(of(123), of(False)), ["abc", 123, False]),
    "join of none": (lambda: of(1).join(), [1]),
    "join, then map": (lambda: of(1).join(of(2)).map(sum), 3),
    "filter, then reduce": (
        lambda: of([1, 2, 3]).filter(lambda number: number > 1).reduce(lambda x, y: x * y),
        6,
    ),
}


@both_ways
@pytest.mark.parametrize("name", DERIVED)
def test_a_derived_future_has_the_value_that_pykka_says(name, read):
    make, value = DERIVED[name]
    future = make()
    assert isinstance(future, ActorFuture)
    assert read(future) == value
    assert read(future) == value


@both_ways
def test_the_function_is_called_once_however_often_the_value_is_read(read):
    calls: list[int] = []
    future = of(1).map(lambda number: calls.append(number) or number + 1)
    assert calls == [], "not before somebody wants the value"
    assert [read(future), read(future)] == [2, 2]
    assert calls == [1]


@both_ways
def test_what_the_source_raises_comes_out_of_the_derived(read):
    source = ActorFuture()
    source.set_exception(Oops("at the source"))
    for derived in (
        source.map(str),
        source.filter(bool),
        source.reduce(max),
        source.join(of(1)),
        of(1).join(source),
    ):
        with pytest.raises(Oops, match="at the source"):
            read(derived)


@both_ways
def test_what_the_function_raises_comes_out_of_the_derived(read):
    with pytest.raises(ZeroDivisionError):
        read(of(0).map(lambda number: 1 / number))
    with pytest.raises(TypeError):
        read(of(1).filter(bool))
    with pytest.raises(TypeError):
        read(of([]).reduce(max))


def test_a_derived_future_has_no_value_of_its_own_to_be_set():
    derived = of(1).map(str)
    with pytest.raises(UsageError, match="derived"):
        derived.set("other")
    with pytest.raises(UsageError, match="derived"):
        derived.set_exception(Oops())
    assert derived.get() == "1"


def test_the_timeout_of_a_derived_future_is_that_of_its_source():
    source = ActorFuture()
    for derived in (
        source.map(str),
        source.filter(bool),
        source.reduce(max),
        source.join(of(1)),
        of(1).join(source),
    ):
        with pytest.raises(AskTimeout):
            derived.get(timeout=0.001)
    source.set([1])
    assert source.map(len).get() == 1


def test_a_derived_future_can_be_read_after_a_timeout():
    source = ActorFuture()
    derived = source.map(str)
    with pytest.raises(AskTimeout):
        derived.get(timeout=0)
    source.set(1)
    assert derived.get() == "1"


def test_the_timeout_of_a_join_is_for_all_of_them_together():
    timeouts: list[float] = []

    class Noting(ActorFuture):
        def get(self, *, timeout: float | None = None) -> object:
            timeouts.append(timeout)
            return super().get(timeout=timeout)

    def noting() -> Noting:
        future = Noting()
        future.set(1)
        return future

    of(1).join(noting(), noting()).get(timeout=60)
    first, second = timeouts
    assert 60 > first > second > 0


@both_ways
def test_a_join_takes_pykkas_own_futures_too(read):
    foreign: pykka.ThreadingFuture = pykka.ThreadingFuture()
    foreign.set(2)
    assert read(of(1).join(foreign)) == [1, 2]


def test_derived_futures_are_awaited_while_their_sources_are_still_to_come(run):
    async def main() -> None:
        first, second = ActorFuture(threading.get_ident()), ActorFuture(threading.get_ident())
        total = asyncio.create_task(_awaited(first.join(second).map(sum)))
        await asyncio.sleep(0)
        second.set(2)
        await asyncio.sleep(0)
        assert not total.done()
        first.set(1)
        assert await total == 3

    run(main())


def test_reading_a_derived_future_on_the_loops_own_thread_is_a_usage_error():
    source = ActorFuture(loop_thread=threading.get_ident())
    for derived in (
        source.map(str),
        source.filter(bool),
        source.reduce(max),
        source.join(of(1)),
        of(1).join(source),
    ):
        with pytest.raises(UsageError, match="await"):
            derived.get()


def test_a_derived_future_says_whether_it_is_done():
    source = ActorFuture()
    derived = [source.map(str), source.join(of(1))]
    assert not any(future.done() for future in derived)
    source.set(1)
    assert all(future.done() for future in derived)


# --- pykka's way to derive ---


def test_a_get_hook_takes_the_place_of_a_value():
    future = ActorFuture()
    future.set_get_hook(lambda timeout: ("hooked", timeout))
    with pytest.raises(UsageError):
        future.set("value")
    assert future.get(timeout=3) == ("hooked", 3)


def test_a_get_hook_comes_too_late_for_a_future_that_has_its_value():
    with pytest.raises(UsageError):
        of(1).set_get_hook(lambda timeout: 2)


def test_a_get_hook_of_the_users_own_can_be_awaited():
    future = ActorFuture()
    future.set_get_hook(lambda timeout: "hooked")
    assert awaiting(future) == "hooked"
