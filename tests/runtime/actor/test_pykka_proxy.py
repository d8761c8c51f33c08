"""pykka's proxies over both kinds of our actors: attributes, methods, traversable attributes,
`defer`, and a proxy to oneself.
"""

import asyncio
import threading

import pykka
import pytest
from pykka.typing import ActorMemberMixin, proxy_field, proxy_method

from offbook.runtime import Actor, ActorFuture, ActorSystem, ThreadActor, UsageError


class Plain:
    inner = "plain"


@pykka.traversable
class Decorated:
    inner = "decorated"

    def shout(self, what):
        return what.upper()


class Marked:
    pykka_traversable = True
    inner = "marked"


class Slotted:
    __slots__ = ["inner", "pykka_traversable"]

    def __init__(self):
        self.pykka_traversable = True
        self.inner = "slotted"


class BrokenEq:
    __hash__ = None

    def __eq__(self, other):
        raise ZeroDivisionError


class Cat(Actor):
    sound = "meow"
    _private = "secret"
    plain = Plain()
    function_marked = pykka.traversable(Plain())
    decorated = Decorated()
    marked = Marked()
    slotted = Slotted()
    broken = BrokenEq()
    _mood = "calm"

    def __init__(self):
        super().__init__()
        self.name = "Tom"
        self.failed = threading.Event()
        self._later = None

    def on_failure(self, *_details):
        self.failed.set()

    @property
    def mood(self):
        return self._mood

    @mood.setter
    def mood(self, mood):
        self._mood = mood

    @property
    def age(self):
        return 7

    @property
    def expensive(self):
        raise AssertionError("a property was read while the proxy was made")

    @property
    def found(self):
        return Marked()

    def greet(self, whom, *, sign="!"):
        return f"Hello, {whom}{sign}"

    async def greet_later(self, whom):
        await asyncio.sleep(0)
        return f"Later, {whom}"

    def rename(self, name):
        self.name = name

    def boom(self):
        raise ZeroDivisionError

    def talk_to_self(self):
        return self.actor_ref.proxy().greet("from the future")


class ThreadCat(Cat, ThreadActor):
    pass


@pytest.fixture(params=[Cat, ThreadCat])
def cat(request):
    return request.param


@pytest.fixture
def proxy(cat):
    with ActorSystem.in_thread():
        yield cat.start().proxy()


def test_attributes_of_class_and_instance_can_be_read_and_set(proxy):
    assert isinstance(proxy.name, ActorFuture)
    assert proxy.sound.get() == "meow"
    assert proxy.name.get() == "Tom"
    proxy.name = "Felix"
    proxy.sound = "purr"
    assert (proxy.name.get(), proxy.sound.get()) == ("Felix", "purr")
    proxy.collar = "red"
    assert proxy.collar.get() == "red"


def test_properties_can_be_read_and_set(proxy):
    assert proxy.mood.get() == "calm"
    proxy.mood = "wild"
    assert proxy.mood.get() == "wild"
    assert proxy.age.get() == 7
    with pytest.raises(AttributeError):
        proxy.age = 8


@pytest.mark.parametrize("name", ["missing", "_private"])
def test_what_is_not_there_or_private_is_an_attribute_error(proxy, name):
    if name.startswith("_"):
        with pytest.raises(AttributeError, match=name):
            getattr(proxy, name)
    else:
        with pytest.raises(AttributeError, match="has no attribute 'missing'"):
            proxy.missing()
        with pytest.raises(AttributeError, match="has no attribute 'missing'"):
            proxy.missing.defer()


def test_methods_return_futures(proxy):
    assert proxy.greet("world").get() == "Hello, world!"
    assert proxy.greet("moon", sign="?").get() == "Hello, moon?"
    assert proxy.greet_later("sun").get() == "Later, sun"
    assert isinstance(proxy.greet, pykka.CallableProxy)
    assert proxy.rename("Felix").get() is None
    assert proxy.name.get() == "Felix"


def test_a_deferred_call_has_no_reply(proxy):
    assert proxy.rename.defer("Felix") is None
    assert proxy.name.get() == "Felix"


def test_what_a_method_raises_is_raised_by_its_future_and_the_actor_lives(proxy):
    with pytest.raises(ZeroDivisionError):
        proxy.boom().get()
    failed = proxy.failed.get()
    assert not failed.is_set()
    proxy.boom.defer()
    assert failed.wait(5)
    assert proxy.actor_ref.actor_stopped.wait(5)


@pytest.mark.parametrize(
    ("name", "inner"),
    [
        ("function_marked", "plain"),
        ("decorated", "decorated"),
        ("marked", "marked"),
        ("slotted", "slotted"),
    ],
)
def test_traversable_attributes_are_traversed(proxy, name, inner):
    assert getattr(proxy, name).inner.get() == inner


def test_methods_of_traversable_attributes_are_called_and_their_attributes_set(proxy):
    assert proxy.decorated.shout("hey").get() == "HEY"
    proxy.decorated.volume = 11
    assert proxy.decorated.volume.get() == 11


def test_other_attributes_are_not_traversed(proxy):
    with pytest.raises(AttributeError, match="has no attribute 'inner'"):
        proxy.plain.inner.get()
    assert proxy.found.get().inner == "marked"
    assert proxy.broken.get() is Cat.broken


def test_a_proxy_shows_what_its_actor_has(proxy):
    assert {"sound", "name", "greet", "broken", "actor_ref", "__dict__", "__setattr__"} <= set(
        dir(proxy)
    )
    assert "_private" not in dir(proxy)
    assert repr(proxy).startswith("<ActorProxy for")
    assert "Cat" in repr(proxy)
    assert "marked" in repr(proxy.marked)


def test_proxies_of_one_actor_are_equal(proxy):
    again = proxy.actor_ref.proxy()
    assert again == proxy
    assert hash(again) == hash(proxy)
    assert pykka.ActorProxy(actor_ref=proxy.actor_ref) == proxy
    assert proxy != proxy.marked
    assert proxy != type(proxy.actor_ref.proxy()._actor).start().proxy()


def test_an_actor_can_have_a_proxy_to_itself(proxy):
    assert proxy.talk_to_self().get(timeout=5).get(timeout=5) == "Hello, from the future!"


@pytest.mark.parametrize("base", [Actor, ThreadActor])
@pytest.mark.parametrize("where", ["__init__", "on_start"])
def test_an_actor_can_make_the_proxy_to_itself_at_its_beginning(base, where):
    """pykka's documentation shows both places: to put off work that is to be done later."""

    class Cooperative(base):
        def __init__(self):
            super().__init__()
            self._left = []
            if where == "__init__":
                self._in_future = self.actor_ref.proxy()

        def on_start(self):
            if where == "on_start":
                self._in_future = self.actor_ref.proxy()

        def count_down(self, number, done):
            self._left.append(number)
            if number:
                self._in_future.count_down(number - 1, done)
            else:
                done.set(self._left)

    done = ActorFuture()
    with ActorSystem.in_thread():
        Cooperative.start().proxy().count_down(3, done)
        assert done.get(timeout=5) == [3, 2, 1, 0]


def test_a_proxy_to_a_dead_actor_cannot_be_made_and_an_old_one_says_so(proxy):
    proxy.stop().get()
    assert proxy.actor_ref.actor_stopped.wait(5)
    with pytest.raises(pykka.ActorDeadError):
        proxy.actor_ref.proxy()
    with pytest.raises(pykka.ActorDeadError):
        proxy.greet("?").get()
    with pytest.raises(pykka.ActorDeadError):
        proxy.name.get()
    with pytest.raises(pykka.ActorDeadError):
        proxy.name = "?"
    with pytest.raises(pykka.ActorDeadError):
        proxy.rename.defer("?")


def test_methods_of_the_actor_itself_can_be_called(proxy):
    assert isinstance(proxy.actor_urn.get(), str)
    assert proxy.actor_urn.get() == proxy.actor_ref.actor_urn
    assert proxy.actor_children.get() == ()
    assert proxy.stop().get() is None


def test_typed_proxies_of_pykka_work(proxy):
    class Typed(ActorMemberMixin, pykka.ActorProxy):
        sound = proxy_field(Cat.sound)
        greet = proxy_method(Cat.greet)

    assert proxy.sound.get() == "meow"
    assert isinstance(Typed(actor_ref=proxy.actor_ref), pykka.ActorProxy)


def test_methods_replaced_on_the_class_are_called(cat, monkeypatch):
    monkeypatch.setattr(cat, "greet", lambda self, whom: f"mocked for {whom}")
    with ActorSystem.in_thread():
        assert cat.start().proxy().greet("me").get() == "mocked for me"


def test_a_proxy_is_awaited_on_the_loop_and_says_so_where_it_would_block(run):
    async def main():
        async with ActorSystem() as system:
            proxy = system.spawn(Cat).proxy()
            assert await proxy.name == "Tom"
            assert await proxy.greet_later("sun") == "Later, sun"
            with pytest.raises(ZeroDivisionError):
                await proxy.boom()
            proxy.rename.defer("Felix")
            assert await proxy.name == "Felix"
            with pytest.raises(UsageError, match="await"):
                proxy.name.get()
            with pytest.raises(UsageError, match="request"):
                proxy.name = "Garfield"

    run(main())
