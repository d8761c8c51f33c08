"""What the tests of races share: a store whose calls wait at gates or fail, a model that waits, and systems beside one another on one loop."""

import asyncio

from understudy.actors import ChatModelAgent
from understudy.runtime import ActorSystem, MemoryStore, Message

PATIENCE = 5
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


class HeldStore(MemoryStore):
    """Each call takes a turn of the loop. Those of a method, with a word in the key, can be held before or after they are done, or fail."""

    def __init__(self, **options):
        self._counter = [0]  # the last epoch, for all doors
        super().__init__(**options)
        self._rules = []
        self.calls = []  # (method, key) of each

    def door(self):
        """Another store with the same data, and gates of its own: as another process has one."""
        other = HeldStore(time=self._time)
        for name in ("_entries", "_short", "_owners", "_claims", "_counter", "_locks"):
            setattr(other, name, getattr(self, name))
        return other

    @property
    def _epoch(self):
        return self._counter[0]

    @_epoch.setter
    def _epoch(self, epoch):
        self._counter[0] = epoch

    def hold(self, method, word="", *, after=False):
        """Hold the calls that come from now on."""
        gate = Gate()
        self._rules.append((method, word, after, gate.wait))
        return gate

    def fail(self, method, word="", error=OSError, *, after=False, once=False):
        """Have them fail, or the next one only. Returns what ends that."""

        async def broken():
            if once:
                self._rules.remove(rule)
            raise error("it is broken")

        rule = (method, word, after, broken)
        self._rules.append(rule)
        return lambda: self._rules.remove(rule)

    async def _pass(self, method, keys, *, after):
        for name, word, is_after, act in tuple(self._rules):
            if name == method and is_after is after and any(word in key for key in keys):
                await act()

    def open_keys(self):
        return [key for key in self._entries if ":open:" in key]

    def claimed(self):
        """The keys that a living owner has."""
        return sorted(key.removeprefix("understudy:") for key, holding in self._claims.items() if self._is_alive(holding.owner))


def _keys_of(method, first, *arguments):
    """The key of a call, and those that it writes."""
    if method == "commit":
        return [first.key if first is not None else "", *(write.key for write in arguments[0])]
    if method == "claim" and len(arguments) > 1:
        return [first, *(write.key for write in arguments[1])]
    return [first]


def _held(method):
    async def call(self, key="", *arguments, **options):
        keys = _keys_of(method, key, *arguments)
        self.calls.append((method, keys[0]))
        await asyncio.sleep(0)
        await self._pass(method, keys, after=False)
        result = await getattr(MemoryStore, method)(self, key, *arguments, **options)
        await self._pass(method, keys, after=True)
        return result

    return call


for _method in ("get", "set", "delete", "append", "read", "keys", "create", "keep_alive", "revoke", "claim", "commit", "holder", "orphans"):
    setattr(HeldStore, _method, _held(_method))


class Echo:
    """A model that says how many messages it was given and what the last one was; at one that begins with "wait" it waits."""

    def __init__(self):
        self.gate, self.asked = asyncio.Event(), asyncio.Event()
        self.cut = 0

    async def generate(self, request):
        last = request.messages[-1].text
        if last.startswith("wait"):
            self.asked.set()
            try:
                await self.gate.wait()
            except asyncio.CancelledError:
                self.cut += 1
                raise
        return Message.assistant(f"{len(request.messages)} {last}")


def echoing(model=None):
    return ChatModelAgent(name="A", model=model or Echo())


def beside(clock=None):
    """A system on the running loop, beside others, as if it were another process."""
    system = ActorSystem("beside", clock=clock)
    system.bind(asyncio.get_running_loop())
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
