"""Where a program written for pykka meets a deliberate difference: each row of the guide's table
that is not "the same".
"""

import threading

import pykka
import pytest

from offbook.runtime import Actor, ActorDeadError, ActorSystem, ThreadActor, UsageError

pytestmark = pytest.mark.parametrize("base", [Actor, ThreadActor])


@pytest.fixture
def system():
    with ActorSystem.in_thread() as system:
        yield system


def test_a_ref_and_a_proxy_show_the_class_and_the_urn(system, base):
    class Greeter(base):
        pass

    ref = system.spawn(Greeter, name="hello")
    for shown in (str(ref), repr(ref), str(ref.proxy()), repr(ref.proxy())):
        assert "Greeter" in shown
        assert ref.actor_urn in shown
    assert "hello" in str(ref)


def test_stop_within_an_actor_overtakes_what_is_queued(system, base):
    handled, entered = [], threading.Event()
    go_on = threading.Event()

    class Stops(base):
        def on_receive(self, message):
            handled.append(message)
            if message == "first":
                entered.set()
                go_on.wait(10)
                self.stop()

    ref = system.spawn(Stops)
    ref.tell("first")
    entered.wait(10)
    if base is ThreadActor:  # on the loop, nothing can be sent while a handler blocks it
        second = ref.ask("second", block=False)
        go_on.set()
        with pytest.raises(ActorDeadError):
            second.get(timeout=10)
    go_on.set()
    ref.stop()
    assert handled == ["first"]


def test_stop_with_drain_handles_what_is_queued_first(system, base):
    handled = []

    class Notes(base):
        def on_receive(self, message):
            handled.append(message)

    ref = system.spawn(Notes)
    for number in range(5):
        ref.tell(number)
    ref.stop(drain=True)
    assert handled == list(range(5))


def test_g04_a_base_exception_ends_that_actor_alone(system, base):
    class Fails(base):
        def on_receive(self, message):
            raise BaseException(message)

    class Lives(base):
        def on_receive(self, message):
            return message

    failing, living = system.spawn(Fails), system.spawn(Lives)
    failing.tell("x")
    failing.stop()
    assert living.ask("hello", timeout=10) == "hello"
    assert pykka.ActorRegistry.get_by_urn(living.actor_urn) is not None


def test_an_actor_is_not_made_by_calling_its_class(base):
    class Greeter(base):
        def __init__(self, name):
            super().__init__()
            self.name = name

    with pytest.raises(UsageError, match=r"start|spawn"):
        Greeter("Ada")


def test_a_message_to_an_actor_that_has_stopped_says_which_one(system, base):
    class Greeter(base):
        pass

    ref = system.spawn(Greeter, name="hello")
    ref.stop()
    with pytest.raises(ActorDeadError, match="hello"):
        ref.ask("x", timeout=10)
