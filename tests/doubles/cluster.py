"""A cluster without Ray: each host has a thread and a loop of its own, and may be killed, stopped,
cut off, or have its batches lost on the way.
"""

import asyncio
import threading
from contextlib import asynccontextmanager

from offbook.runtime import ActorSystem
from offbook.runtime.cluster.client.cluster import Cluster
from offbook.runtime.cluster.host.life import HostLife
from offbook.runtime.cluster.limits import limits_of
from offbook.runtime.cluster.spec import ClusterSpec
from offbook.runtime.cluster.transport import HostGone, Place

_END = object()


class Machine:
    """One life of the process of a host."""

    def __init__(self, machines, name, spec):
        self.machines, self.name, self.spec = machines, name, spec
        self.loop = asyncio.new_event_loop()
        self.gone = False  # as if its process had ended
        self.frozen = False  # as if it were stopped
        self.readers = set()  # (loop, queue) of those who wait for what it sends
        self.system = None
        self._made = threading.Event()
        self._left = threading.Event()
        self.thread = threading.Thread(target=self._run, name=name, daemon=True)
        self.thread.start()
        self._made.wait(10)

    def _run(self):
        asyncio.set_event_loop(self.loop)

        async def make():
            self.life = HostLife(
                self.spec,
                self.name,
                self.machines.seen_by(self.name),
                node="here",
                make_system=self._make_system,
            )
            self.living = self.loop.create_task(self.life.live())
            self._made.set()

        self.loop.run_until_complete(make())
        self.loop.run_forever()
        self._left.set()

    def _make_system(self, lease):
        self.system = ActorSystem(self.name, lease_seconds=lease)
        return self.system

    def stop(self):
        """Do nothing more: neither timers nor what comes."""
        if not self._left.is_set():
            self.loop.call_soon_threadsafe(self.loop.stop)
            self._left.wait(10)
            self.thread.join(10)

    def go_on(self):
        """After `stop`: as if nothing had been."""
        self._left.clear()
        self.frozen = False
        self.thread = threading.Thread(
            target=lambda: (self.loop.run_forever(), self._left.set()), daemon=True
        )
        self.thread.start()

    def end(self):
        """Leave nothing: what it has begun is brought to its end, by the same loop."""
        self.stop()

        async def finish():
            await self.life.end()
            await self.living
            others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
            for task in others:
                task.cancel()
            await asyncio.gather(*others, return_exceptions=True)
            await self.loop.shutdown_asyncgens()
            await self.loop.shutdown_default_executor()

        asyncio.set_event_loop(self.loop)
        self.loop.run_until_complete(finish())
        asyncio.set_event_loop(None)
        self.loop.close()

    def break_readers(self):
        for loop, queue in list(self.readers):
            loop.call_soon_threadsafe(queue.put_nowait, HostGone(self.name))


class Machines:
    """All of them: a transport."""

    def __init__(self, *, restart=True):
        self.by_name = {}
        self.old = []  # that were killed, or have ended
        self.restart = restart
        self.avoided = {}  # the nodes on which hosts must not be
        self.starting = asyncio.Lock()
        # What becomes of a batch on its way: "pass", "lose", "twice", "late".
        self.fault = lambda host, number: "pass"
        # Pairs of names between which nothing gets through; "client" is who has no name.
        self.cut = set()
        self.silent = set()  # such pairs where nothing says so: what is on its way never comes
        self.endless = False  # whether the end of a stream never comes

    def seen_by(self, name):
        return Seen(self, name)

    # --- the transport, as the client has it ---

    async def open(self):
        pass

    def place(self):
        return Place("here", "the machines of the tests", {})

    async def close(self):
        pass

    async def names(self, cluster):
        return [name for name in self.by_name if name.startswith(cluster + "/")]

    def endpoint(self, host):
        return Door(self, host, "client")

    async def start(self, host, spec, *, avoid=""):
        if avoid:
            self.avoided[host] = avoid
        async with self.starting:
            if self.by_name.get(host) is None:
                self.by_name[host] = await asyncio.to_thread(Machine, self, host, spec)

    async def end(self, host, *, again):
        machine = self.by_name.get(host)
        if machine is not None:
            if not again:
                del self.by_name[host]
            await asyncio.to_thread(self.kill, machine)

    # --- what goes wrong ---

    def kill(self, machine, *, again=None):
        """As SIGKILL. Ray starts it again, on another loop."""
        if machine.gone:
            return
        machine.gone = True
        machine.stop()
        self.old.append(machine)
        machine.break_readers()
        if self.by_name.get(machine.name) is machine:
            del self.by_name[machine.name]
            if self.restart if again is None else again:
                self.by_name[machine.name] = Machine(self, machine.name, machine.spec)

    def freeze(self, name):
        """As SIGSTOP."""
        machine = self.by_name[name]
        machine.frozen = True
        machine.stop()
        return machine

    def clean_up(self):
        for machine in [*self.old, *self.by_name.values()]:
            machine.end()


class Seen:
    """The transport as a host has it."""

    def __init__(self, machines, name):
        self.machines, self.name = machines, name

    def __getattr__(self, attribute):
        return getattr(self.machines, attribute)

    def endpoint(self, host):
        return Door(self.machines, host, self.name)


class Door:
    def __init__(self, machines, host, who):
        self.machines, self.host, self.who = machines, host, who

    def _machine(self):
        machine = self.machines.by_name.get(self.host)
        if machine is None or machine.gone or {self.who, self.host} in self.machines.cut:
            raise HostGone(self.host)
        return machine

    def send(self, client, link, number, data):
        try:
            machine = self._machine()
        except HostGone:
            return None
        fate = self.machines.fault(self.host, number)
        if fate != "lose" and {self.who, self.host} not in self.machines.silent:
            delay = 0.02 if fate == "late" else 0

            async def bring():
                await asyncio.sleep(delay)
                return await machine.life.take(client, link, number, data)

            times = 2 if fate == "twice" else 1
            sent = [asyncio.run_coroutine_threadsafe(bring(), machine.loop) for _ in range(times)]
            return asyncio.wrap_future(sent[0])
        return None

    async def _stream(self, make):
        machine = self._machine()
        here, queue = asyncio.get_running_loop(), asyncio.Queue()
        room = threading.Semaphore(4)

        async def pump():
            source = make(machine.life)
            try:
                async for data in source:
                    await asyncio.to_thread(room.acquire)
                    here.call_soon_threadsafe(queue.put_nowait, data)
                here.call_soon_threadsafe(queue.put_nowait, _END)
            except Exception as error:
                here.call_soon_threadsafe(queue.put_nowait, error)

        machine.readers.add(reader := (here, queue))
        pumping = asyncio.run_coroutine_threadsafe(pump(), machine.loop)
        try:
            while True:
                data = await queue.get()
                room.release()
                if {self.who, self.host} in self.machines.silent or (
                    data is _END and self.machines.endless
                ):
                    continue
                if data is _END:
                    break
                if isinstance(data, Exception):
                    raise data
                if {self.who, self.host} in self.machines.cut:
                    raise HostGone(self.host)
                yield data
        finally:
            machine.readers.discard(reader)
            for _ in range(5):
                room.release()
            if not machine.gone:
                pumping.cancel()

    def replies(self, client, link, incarnation):
        return self._stream(lambda life: life.replies(client, link, incarnation))

    def events(self, client, request):
        return self._stream(lambda life: life.events(client, request))

    async def control(self):
        machine = self._machine()
        if machine.frozen or {self.who, self.host} in self.machines.silent:
            await asyncio.Event().wait()
        return machine.life.control()

    async def call(self, what, data):
        machine = self._machine()
        here = asyncio.wrap_future(
            asyncio.run_coroutine_threadsafe(machine.life.call(what, data), machine.loop)
        )
        while not here.done():
            await asyncio.wait((here,), timeout=0.05)
            if machine.gone:
                here.cancel()
                raise HostGone(self.host)
        return await here


QUICK = {
    "lease_seconds": 2.0,
    "sweep_seconds": 0.2,
    "suspect_seconds": 1.0,
    "link_seconds": 5.0,
    "hang_seconds": 3.0,
}


def spec_of(factory="tests.programs.cluster_shop:host", name="shop", **given):
    limits = limits_of({**QUICK, **given.pop("limits", {})})
    return ClusterSpec(name, factory, allow=("tests.",), limits=limits, **given)


@asynccontextmanager
async def cluster_of(hosts=2, *, machines=None, **given):
    """A cluster on machines of this process."""
    machines = machines or Machines()
    spec = spec_of(**given)
    try:
        async with Cluster(spec.cluster, spec, hosts, machines) as cluster:
            yield cluster, machines
            # What has been received is told now, and not with the next beat, for which each host
            # would wait before it ends.
            for link in cluster._routes._links.values():
                if link._link:
                    link._flush(even_empty=True)
    finally:
        await asyncio.to_thread(machines.clean_up)
