"""Actors that fail by a script: what the tests of the failure matrix have in common.

The victim numbers its instances, and has its hooks written down by the script, which tells one of
them to raise; its parent decides as it was told.
"""

import asyncio
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from offbook.runtime import (
    Actor,
    ActorFailed,
    Backoff,
    Directive,
    Escalate,
    Restart,
    Resume,
    Stop,
    ThreadActor,
)


class OwnBaseException(BaseException):
    pass


RAISED = (
    ValueError,
    asyncio.CancelledError,
    KeyboardInterrupt,
    SystemExit,
    GeneratorExit,
    OwnBaseException,
)
RESTART = Restart(backoff=Backoff(initial=0))
DIRECTIVES = (RESTART, Resume(), Stop(), Escalate())


class Script:
    """Tells the given hook of the given instance to raise; after it has stopped its own actor, if
    so wanted.
    """

    def __init__(self, hook, instance, error, *, stops=False):
        self.strike, self.error, self.stops = (hook, instance), error, stops
        self.calls = []
        self.made = 0

    def prepare(self, hook, actor):
        """What comes before: an asynchronous hook lets the request to stop arrive, and then
        raises.
        """
        if self.stops and (hook, actor.number) == self.strike:
            actor.stop()

    def play(self, hook, actor):
        self.prepare(hook, actor)
        self.calls.append((hook, actor.number))
        if (hook, actor.number) == self.strike:
            raise self.error("as the script says")


class Synchronous:
    def __init__(self, script):
        super().__init__()
        self.script = script
        script.made += 1
        self.number = script.made
        script.play("__init__", self)

    def on_start(self):
        self.script.play("on_start", self)

    def on_receive(self, message):
        if message == "number":
            return self.number
        if message == "fail":
            raise ArithmeticError("first")
        if message == "child":
            bomb = self.spawn(Bomb)
            bomb.tell("fail")
            return bomb
        self.script.play("handler", self)

    def method(self):
        self.script.play("method", self)

    def on_stop(self):
        self.script.play("on_stop", self)

    def on_failure(self, kind, error, traceback):
        self.script.play("on_failure", self)

    def on_child_failure(self, ref, error):
        self.script.play("on_child_failure", self)
        return Stop()


class Asynchronous(Synchronous):
    async def pause(self, hook):
        self.script.prepare(hook, self)
        await asyncio.sleep(0)
        await asyncio.sleep(0)

    async def on_start(self):
        await self.pause("on_start")
        super().on_start()

    async def on_receive(self, message):
        await self.pause("handler" if message == "work" else "")
        return super().on_receive(message)

    async def method(self):
        await self.pause("method")
        super().method()

    async def on_stop(self):
        await self.pause("on_stop")
        super().on_stop()

    async def on_failure(self, *args):
        await self.pause("on_failure")
        super().on_failure(*args)

    async def on_child_failure(self, ref, error):
        await self.pause("on_child_failure")
        return super().on_child_failure(ref, error)


class Bomb(Actor):
    def on_receive(self, message):
        raise ArithmeticError("of the child")


class Parent:
    """Has the victim and a sibling of it, and the given directives for them, one after the other,
    the last one for ever.
    """

    def __init__(self, directives):
        super().__init__()
        self.directives, self.heard = list(directives), []

    def on_receive(self, message):
        if isinstance(message, tuple):
            return self.spawn(*message, name="victim")
        return self.heard

    def on_child_failure(self, ref, error):
        self.heard.append(error)
        return self.directives.pop(0) if self.directives[1:] else self.directives[0]


KINDS = (Actor, ThreadActor)
VICTIMS = [
    type(f"{mixin.__name__}{kind.__name__}", (mixin, kind), {})
    for mixin in (Synchronous, Asynchronous)
    for kind in KINDS
]
PARENTS = {kind: type("Parent", (Parent, kind), {}) for kind in KINDS}


def parent_of(victim):
    return PARENTS[victim.__bases__[1]]


# --- how each hook is made to fail ---


class Stroke(NamedTuple):
    hook: str  # what raises
    instance: int  # of which instance
    cause: Callable[[Any], Any]  # makes it happen
    before: tuple[Directive, ...] = ()  # what the parent has to decide before
    asks: bool = False  # whether an ordinary exception is the asker's


async def nothing(ref):
    pass


async def tell(ref):
    ref.tell("work")


async def ask(ref):
    return await ref.request("work")


async def call(ref):
    return await ref.proxy().method()


async def stop(ref):
    assert await ref.stop() is True


async def fail(ref):
    ref.tell("fail")


async def fail_child(ref):
    child = await ref.request("child")
    await child.wait_stopped()


STROKES = {
    "on_start": Stroke("on_start", 1, nothing),
    "handler (tell)": Stroke("handler", 1, tell),
    "handler (ask)": Stroke("handler", 1, ask, asks=True),
    "proxy method": Stroke("method", 1, call, asks=True),
    "on_stop": Stroke("on_stop", 1, stop),
    "on_failure": Stroke("on_failure", 1, fail),
    "on_child_failure": Stroke("on_child_failure", 1, fail_child),
    "__init__ at restart": Stroke("__init__", 2, fail, before=(RESTART,)),
    "on_start at restart": Stroke("on_start", 2, fail, before=(RESTART,)),
}


async def strike(stroke, ref, error):
    """Make it happen.

    Whoever asked is told the truth, but never gets an exception that is no `Exception`.
    """
    if not stroke.asks:
        await stroke.cause(ref)
        return
    with pytest.raises(
        error if issubclass(error, Exception) else ActorFailed,
        match=error.__name__ if not issubclass(error, Exception) else "script",
    ):
        await stroke.cause(ref)
