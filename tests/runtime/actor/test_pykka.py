"""Programs written for pykka: starting, sending, stopping and futures, with both kinds of our
actors, from a thread that has no loop.

Where we differ on purpose, the test says so: `stop` overtakes what is queued, and nothing that one
actor raises ends another one.
"""

import asyncio
import re
import threading
import uuid

import pykka
import pytest

from offbook.runtime import (
    Actor,
    ActorFuture,
    ActorRef,
    ActorSystem,
    Restart,
    ThreadActor,
    UsageError,
)


def kinds(actor_class):
    """The same class on the loop, and on a thread of its own."""
    return [actor_class, type(f"Thread{actor_class.__name__}", (actor_class, ThreadActor), {})]


class Events:
    def __init__(self):
        self.started, self.stopped, self.failed, self.registered, self.greeted = (
            threading.Event() for _ in range(5)
        )


class Story(Actor):
    """pykka's own example of everything: does what it is told, and notes which hooks are called."""

    def __init__(self, events, *, on_start=None, on_stop=None, on_failure=None):
        super().__init__()
        self.events = events
        self.on = {"start": on_start, "stop": on_stop, "failure": on_failure}

    def do(self, hook):
        if self.on[hook] is not None:
            self.on[hook](self)

    def on_start(self):
        if pykka.ActorRegistry.get_by_urn(self.actor_urn) is not None:
            self.events.registered.set()
        self.events.started.set()
        self.do("start")

    def on_stop(self):
        self.events.stopped.set()
        self.do("stop")

    def on_failure(self, exception_type, exception_value, traceback):
        self.events.failed.set()
        self.do("failure")

    def on_receive(self, message):
        if message == "greetings":
            self.events.greeted.set()
        elif isinstance(message, BaseException):
            raise message
        elif callable(message):
            return message(self)
        return message


def fail(actor):
    raise ZeroDivisionError


@pytest.fixture(autouse=True)
def system():
    with ActorSystem.in_thread() as system:
        yield system


@pytest.fixture(params=kinds(Story))
def story(request):
    return request.param


@pytest.fixture
def events():
    return Events()


def test_start_returns_a_ref_that_is_pykkas(story, events):
    ref = story.start(events)
    assert isinstance(ref, pykka.ActorRef)
    assert type(ref) is ActorRef
    assert ref.actor_class is story
    assert ref.is_alive()
    assert ref == ref.ask(lambda actor: actor.actor_ref)
    assert hash(ref) == hash(ref.ask(lambda actor: actor.actor_ref))
    assert issubclass(story, pykka.Actor)


def test_an_actor_has_a_urn_of_its_own(story, events):
    refs = [story.start(events) for _ in range(3)]
    assert {uuid.UUID(ref.actor_urn).version for ref in refs} == {4}
    assert len({ref.actor_urn for ref in refs}) == 3
    assert [ref.ask(lambda actor: actor.actor_urn) for ref in refs] == [
        ref.actor_urn for ref in refs
    ]


def test_refs_and_actors_say_what_they_are(story, events):
    ref = story.start(events)
    assert re.fullmatch(r"<ActorRef for .*>", repr(ref))
    assert story.__name__ in repr(ref)
    assert story.__name__ in str(ref)
    assert ref.path in str(ref)
    assert story.__name__ in ref.ask(str)


def test_init_takes_any_arguments():
    class Lazy(Actor):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)

    assert Lazy.start(1, 2, three=3).is_alive()


@pytest.mark.parametrize(
    "message",
    [
        123,
        123.456,
        {"a": "dict"},
        ("a", "tuple"),
        ["a", "list"],
        None,
        {"command": "pykka_stop"},
        object,
    ],
)
def test_any_object_is_a_message(story, events, message):
    ref = story.start(events)
    received = ActorFuture()
    ref.tell(lambda actor: actor.on_receive)
    assert ref.ask(lambda actor: received.set(message)) is None
    assert received.get(timeout=5) == message
    if not callable(message):
        assert ref.ask(message) == message


def test_ask_blocks_times_out_or_returns_a_future(story, events):
    ref, gate = story.start(events), threading.Event()
    assert ref.ask("!") == "!"
    future = ref.ask(lambda actor: gate.wait(10), block=False)
    assert isinstance(future, pykka.Future)
    with pytest.raises(pykka.Timeout):
        ref.ask("!", timeout=0)
    with pytest.raises(pykka.Timeout):
        future.get(timeout=0)
    gate.set()
    assert future.get(timeout=5) is True
    assert future.get() is True


def test_what_a_handler_raises_is_raised_where_it_was_asked_and_the_actor_lives(story, events):
    ref = story.start(events)
    with pytest.raises(ZeroDivisionError):
        ref.ask(fail)
    assert ref.ask("!") == "!"
    assert not events.failed.is_set()


def test_a_dead_actor_is_dead_to_everybody(story, events):
    ref = story.start(events)
    assert ref.stop() is True
    assert ref.stop() is False
    assert not ref.is_alive()
    for call in (
        lambda: ref.tell("?"),
        lambda: ref.ask("?"),
        lambda: ref.ask("?", block=False).get(),
        ref.proxy,
    ):
        with pytest.raises(pykka.ActorDeadError):
            call()
    assert events.stopped.is_set()
    assert not events.failed.is_set()


def test_the_stopped_event_can_be_waited_for(story, events):
    ref = story.start(events)
    assert not ref.actor_stopped.is_set()
    assert ref.actor_stopped.wait(0) is False
    ref.stop(block=False)
    assert ref.actor_stopped.wait(5) is True
    assert ref.actor_stopped.is_set()


def test_on_start_comes_after_the_registration_and_before_the_first_message(story, events):
    ref = story.start(events)
    assert ref.ask(lambda actor: actor.events.started.is_set()) is True
    assert events.registered.is_set()


@pytest.mark.parametrize("hook", ["on_start", "on_stop", "on_failure"])
def test_an_actor_whose_hook_raises_stops(story, events, hook, caplog):
    ref = story.start(events, **{hook: fail})
    if hook == "on_stop":
        assert ref.stop() is True
    elif hook == "on_failure":
        ref.tell(fail)
    assert ref.actor_stopped.wait(5)
    assert not ref.is_alive()
    assert any(
        record.exc_info and record.exc_info[0] is ZeroDivisionError for record in caplog.records
    )
    assert events.failed.is_set() == (hook == "on_failure")


def test_an_actor_can_stop_itself_in_on_start_or_in_a_handler_and_more_than_once(story, events):
    early = story.start(events, on_start=lambda actor: actor.stop())
    assert early.actor_stopped.wait(5)
    assert events.stopped.is_set()
    late = story.start(Events())
    assert late.ask(lambda actor: [actor.stop(), actor.stop(), "bye"].pop()) == "bye"
    assert late.actor_stopped.wait(5)


def test_an_exception_that_nobody_asked_for_fails_the_actor(story, events):
    ref = story.start(events)
    ref.tell(ZeroDivisionError())
    assert ref.actor_stopped.wait(5)
    assert events.failed.is_set()
    assert not events.stopped.is_set()
    assert ref not in pykka.ActorRegistry.get_all()


def test_messages_left_when_an_actor_stops_are_answered_with_an_error(story, events):
    ref, entered, gate = story.start(events), threading.Event(), threading.Event()
    ref.tell(lambda actor: [entered.set(), gate.wait(10)])
    assert entered.wait(5)  # a stop overtakes what has not begun
    left = ref.ask("left", block=False)
    stopped = [ref.stop(block=False) for _ in range(2)]
    late = ref.ask("late", block=False)
    gate.set()
    assert [future.get(timeout=5) for future in stopped] == [True, True]
    for future in (left, late):
        with pytest.raises(pykka.ActorDeadError):
            future.get(timeout=5)


def test_unlike_in_pykka_a_stop_overtakes_what_is_queued(story, events):
    """`stop(drain=True)` is pykka's way. `stop()` of the actor itself overtakes, too."""
    ref = story.start(events)
    ref.ask(lambda actor: [actor.actor_ref.tell("greetings"), actor.stop()])
    assert ref.actor_stopped.wait(5)
    assert not events.greeted.is_set()
    ref, gate = story.start(events), threading.Event()
    ref.tell(lambda actor: gate.wait(10))
    ref.tell("greetings")
    stopped = ref.stop(block=False, drain=True)
    gate.set()
    assert stopped.get(timeout=5)
    assert events.greeted.is_set()


@pytest.mark.parametrize(
    "error", [KeyboardInterrupt, SystemExit, asyncio.CancelledError, GeneratorExit]
)
def test_g04_unlike_in_pykka_a_base_exception_ends_one_actor_only(story, events, error):
    other, ref = story.start(Events()), story.start(events)
    ref.tell(error())
    assert ref.actor_stopped.wait(5)
    assert events.failed.is_set()
    assert other.ask("unharmed") == "unharmed"


def test_pykkas_own_stop_message_stops(story, events):
    ref = story.start(events)
    ref.tell(pykka.messages._ActorStop())
    assert ref.actor_stopped.wait(5)
    assert events.stopped.is_set()


def test_messages_of_pykka_work_without_a_proxy(story, events):
    ref = story.start(events)
    assert ref.ask(pykka.messages.ProxyCall(("on_receive",), ("!",), {})) == "!"
    assert ref.ask(pykka.messages.ProxyGetAttr(("events",))) is events
    assert ref.ask(pykka.messages.ProxySetAttr(("events", "extra"), 3)) is None
    assert events.extra == 3


def test_the_default_handler_warns_of_unexpected_messages(caplog):
    ref = Actor.start()
    assert ref.ask("what is this?") is None
    (record,) = caplog.records
    assert record.levelname == "WARNING"
    assert "what is this?" in record.getMessage()


def test_the_thread_of_a_thread_actor_bears_its_name_and_is_a_daemon_unless_it_is_said(
    story, events
):
    class Important(ThreadActor):
        use_daemon_thread = False

        def on_receive(self, message):
            return threading.current_thread()

    ref = story.start(events)
    thread = ref.ask(lambda actor: threading.current_thread())
    assert thread.daemon
    if issubclass(story, ThreadActor):
        assert thread.name.startswith(story.__name__)
    assert not Important.start().ask("?").daemon


def test_a_restarted_actor_keeps_its_ref_and_its_urn(story, events, system):
    ref = system.spawn(story, events, supervision=Restart())
    urn = ref.actor_urn
    ref.tell(ZeroDivisionError())
    assert ref.ask("!", timeout=10) == "!"
    assert ref.actor_urn == urn
    assert pykka.ActorRegistry.get_by_urn(urn) == ref


class TestFutures:
    def test_one_that_is_set_has_its_value_for_good(self):
        future = ActorFuture()
        future.set(0)
        with pytest.raises(UsageError):
            future.set(1)
        assert future.get() == 0
        with pytest.raises(UsageError):
            future.set_exception(ValueError())
        assert future.get(timeout=0) == 0

    def test_one_with_a_hook_cannot_be_set_and_one_that_is_set_gets_no_hook(self):
        calls = []
        hooked, was_set = ActorFuture(), ActorFuture()
        hooked.set_get_hook(lambda timeout: calls.append(timeout))
        with pytest.raises(UsageError):
            hooked.set(1)
        assert hooked.get(timeout=0) is None
        assert hooked.get(timeout=0) is None
        assert calls == [0]
        was_set.set("value")
        with pytest.raises(UsageError):
            was_set.set_get_hook(lambda timeout: "hook")
        assert was_set.get(timeout=0) == "value"

    def test_an_exception_keeps_its_traceback(self):
        future = ActorFuture()

        def name_error():
            raise NameError("foo")

        try:
            name_error()
        except NameError:
            future.set_exception()
        for _ in range(2):
            with pytest.raises(NameError, match="foo") as error:
                future.get()
            assert "name_error" in [entry.name for entry in error.traceback]

    def test_they_are_gathered_and_derived_as_in_pykka(self):
        futures = [ActorFuture() for _ in range(3)]
        with pytest.raises(pykka.Timeout):
            pykka.get_all(futures, timeout=0)
        joined = futures[0].join(*futures[1:])
        with pytest.raises(pykka.Timeout):
            joined.get(timeout=0)
        for number, future in enumerate(futures):
            future.set(number)
        assert pykka.get_all(futures) == pykka.get_all(futures) == joined.get() == [0, 1, 2]
        assert joined.map(len).get() == 3
        assert joined.filter(lambda number: number % 2 == 0).get() == [0, 2]
        assert joined.reduce(lambda left, right: left + right, 10).get() == 13
        with pytest.raises(TypeError):
            futures[1].filter(bool).get(timeout=0)

    def test_a_derived_one_computes_once(self):
        future, calls = ActorFuture(), []
        mapped = future.map(lambda value: calls.append(value) or value + 1)
        future.set(1)
        assert [mapped.get(timeout=0), mapped.get(timeout=0)] == [2, 2]
        assert calls == [1]
