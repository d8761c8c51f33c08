"""What the tests of races share: a store whose calls wait at gates or fail, a model that waits, and
systems beside one another on one loop.
"""

import asyncio

from offbook import runtime
from offbook.actors import ChatModelAgent
from offbook.runtime import ActorSystem, MemoryStore, Message, ModelError
from offbook.runtime.durability.leases import leases_of
from tests.doubles.watched_stores import Watched

LEASE_SECONDS = 30
"""For how long the owner of a run is alive after it has said so: what a system that was told
nothing else does.
"""

PATIENCE = 20
"""Seconds of real time after which something that was to happen will never do."""


class Gate:
    """Holds whoever comes to it until it is opened."""

    def __init__(self):
        self.reached, self._opened = asyncio.Event(), asyncio.Event()

    async def wait(self):
        self.reached.set()
        await self._opened.wait()

    def open(self):
        self._opened.set()


class Held(Watched):
    """Each call takes a turn of the loop.

    Those that do something with a key can be held before or after they are done, or fail: `Call`
    has the words.
    """

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self._rules = []
        self.calls = []

    def hold(self, word, part="", *, after=False, skip=0):
        """Hold the calls that come from now on, but for the first `skip`."""
        gate, left = Gate(), [skip]

        async def wait():
            left[0] -= 1
            if left[0] < 0:
                await gate.wait()

        self._rules.append((word, part, after, wait))
        return gate

    def fail(self, word, part="", error=OSError, *, after=False, once=False, skip=0):
        """Have them fail, but for the first `skip`; or the next one only.

        Returns what ends that.
        """
        left = [skip]

        async def broken():
            left[0] -= 1
            if left[0] >= 0:
                return
            if once:
                self._rules.remove(rule)
            raise error("it is broken")

        rule = (word, part, after, broken)
        self._rules.append(rule)
        return lambda: self._rules.remove(rule)

    async def before(self, call):
        self.calls.append(call)
        await asyncio.sleep(0)
        await self._pass(call, after=False)

    async def after(self, call):
        await self._pass(call, after=True)

    async def _pass(self, call, *, after):
        for word, part, is_after, act in tuple(self._rules):
            if is_after is after and call.has(word, part):
                await act()

    def written(self, word="append"):
        """The keys with which that was done so far, or was to be done."""
        return [key for call in self.calls for one, key in call.changes if one == word]


def held(recipe):
    """A store of any kind, as `store_recipe` has it, whose calls can be held; but for one in
    memory, which has doors.
    """
    name, arguments, options = recipe
    return type(f"Held{name}", (Held, getattr(runtime, name)), {})(*arguments, **options)


class HeldStore(Held, MemoryStore):
    """One in memory."""

    def __init__(self, **options):
        self._epochs = [0]
        super().__init__(**options)

    @property
    def _epoch(self):
        return self._epochs[0]

    @_epoch.setter
    def _epoch(self, epoch):
        self._epochs[0] = epoch

    def door(self):
        """Another store with the same data, and gates of its own: as another process has one."""
        other = HeldStore(time=self._time)
        for name in (
            "_ttl",
            "_entries",
            "_index",
            "_short",
            "_owners",
            "_claims",
            "_epochs",
            "_locks",
            "_runs",
        ):
            setattr(other, name, getattr(self, name))
        return other

    def open_keys(self):
        return self._runs.claims(self._time())

    def leases(self):
        """The keys that somebody has."""
        return sorted(
            key.removeprefix("offbook:")
            for key, holding in self._claims.items()
            if self._is_alive(holding.owner)
        )


class Echo:
    """A model that says how many messages it was given and what the last one was; at one that
    begins with "wait" it waits, at "fail" it fails.
    """

    def __init__(self):
        self.gate, self.asked = asyncio.Event(), asyncio.Event()
        self.requests = []
        self.cut = 0

    async def generate(self, request):
        self.requests.append(request)
        last = request.messages[-1].text
        if last.startswith("wait"):
            self.asked.set()
            try:
                await self.gate.wait()
            except asyncio.CancelledError:
                self.cut += 1
                raise
        if last == "fail":
            raise ModelError("it does not answer")
        return Message.assistant(f"{len(request.messages)} {last}")


def echoing(model=None, **options):
    return ChatModelAgent(name="A", model=model or Echo(), **options)


def beside(clock=None, lease_seconds=30):
    """A system on the running loop, alongside others, as if it were another process.

    It is not left when the loop ends, so its owners are not retired: a task that retired one while
    the loop was closing would never end. `lease_seconds`: it learns that its owner was revoked when
    it renews it next, which is after a third of them.
    """
    system = ActorSystem("beside", clock=clock, lease_seconds=lease_seconds)
    system.bind(asyncio.get_running_loop())
    leases_of(system)._retire_timer = asyncio.get_running_loop().call_later(3600, lambda: None)
    return system


async def turns(count=50):
    """Let the loop run for a while."""
    for _ in range(count):
        await asyncio.sleep(0)


async def soon(awaitable):
    """What comes of it, which must not take for ever."""

    async def result():
        return await awaitable

    return await asyncio.wait_for(result(), PATIENCE)


async def passing(clock, seconds, step=0.5):
    """Let the time of a clock go by, a bit at a time."""
    until = clock.monotonic() + seconds
    while clock.monotonic() < until:
        clock.advance(min(step, until - clock.monotonic()))
        await turns()


def texts(messages):
    return [message.text for message in messages]
