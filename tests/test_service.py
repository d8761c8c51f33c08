"""examples/service.py with two workers on one store, that are killed, drained and started again under load: each turn ends once, each client sees all of it."""

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import httpx
import pytest

from tests.programs.servers import free_port

PROGRAM = Path(__file__).parent / "programs" / "service_worker.py"
TURNS = 16
PATIENCE = 120


class Worker:
    """One process of the service, which comes back on the same port."""

    def __init__(self, folder):
        self.folder, self.port, self.process = folder, free_port(), None
        self.url = f"http://127.0.0.1:{self.port}"

    async def start(self):
        env = {**os.environ, "SERVICE_STORE": str(self.folder / "service.db"), "RECOVER_SECONDS": "0.5"}
        self.process = await asyncio.create_subprocess_exec(sys.executable, str(PROGRAM), str(self.port), str(self.folder / "log"), env=env)
        async with httpx.AsyncClient() as http:
            while True:
                with contextlib.suppress(httpx.TransportError):
                    if (await http.get(f"{self.url}/health/ready")).status_code == 200:
                        return
                assert self.process.returncode is None, "the worker has ended"
                await asyncio.sleep(0.05)

    async def end(self, how):
        if self.process.returncode is None:
            self.process.send_signal(how)
        return await self.process.wait()


class Client:
    """Follows one turn to its end, at whichever worker answers, as an EventSource does."""

    def __init__(self, workers, number):
        self.workers, self.id, self.number = workers, f"turn-{number}", number
        self.seen, self.end = [], None
        self.reconnected = 0

    async def follow(self):
        at = self.number
        async with httpx.AsyncClient(timeout=httpx.Timeout(30, read=20)) as http:
            while self.end is None:
                worker = self.workers[at % len(self.workers)]
                try:
                    await self._ask(http, worker)
                except httpx.TransportError:
                    await asyncio.sleep(0.05)
                at += 1
                self.reconnected += 1

    async def _ask(self, http, worker):
        headers = {"Last-Event-ID": str(self.seen[-1])} if self.seen else {}
        async with http.stream("GET", f"{worker.url}/turns/{self.id}/events", headers=headers) as reply:
            if reply.status_code == 200:
                await self._read(reply)
                return
        if reply.status_code == 404:  # it has not been begun, as far as that one knows: it is begun once, however often that is said
            async with http.stream("POST", f"{worker.url}/sessions/s{self.number}/turns", params={"text": self.id, "id": self.id}) as reply:
                if reply.status_code == 200:
                    await self._read(reply)
        else:
            await asyncio.sleep(0.05)

    async def _read(self, reply):
        kind = number = None
        async for line in reply.aiter_lines():
            if line.startswith("id: "):
                number = int(line[4:])
            elif line.startswith("event: "):
                kind = line[7:]
            elif line.startswith("data: "):
                data = json.loads(line[6:])
                if kind == "end" and data["status"] == "completed":
                    self.end = data
                elif number is not None:
                    self.seen.append(number)
                number = None


@pytest.mark.slow
@pytest.mark.timeout(200)
def test_two_workers_are_killed_drained_and_started_again_and_nothing_is_lost_or_shown_twice(run, tmp_path):
    async def main():
        workers = [Worker(tmp_path), Worker(tmp_path)]
        try:
            await asyncio.gather(*(worker.start() for worker in workers))
            clients = [Client(workers, number) for number in range(TURNS)]
            following = asyncio.gather(*(client.follow() for client in clients))
            log = tmp_path / "log"

            async def worked(times):
                while not log.exists() or len(log.read_text().splitlines()) < times:
                    await asyncio.sleep(0.02)

            async with asyncio.timeout(PATIENCE):
                await worked(4)
                await workers[0].end(signal.SIGKILL)  # in the middle
                await workers[0].start()
                await worked(16)
                assert await workers[1].end(signal.SIGTERM) in (0, -signal.SIGTERM)  # a deploy, with streams open: it does not wait for their clients
                await workers[1].start()
                await following
            for client in clients:
                assert client.seen == sorted(set(client.seen)), client.id  # in order, none twice
                assert client.end["status"] == "completed"
            assert sum(client.reconnected > 1 for client in clients) > 0
            # All of each: two messages for each step, and the answer. Numbers may be left out, where a process was lost before it had shown what it drew them for.
            for client in clients:
                assert len(client.seen) == 7, (client.id, client.seen)
            # Each step was done, and what was done twice bears the same key: the one that was under way when its process was killed.
            calls = [line.split() for line in log.read_text().splitlines()]
            keys = Counter(key for _, key, _ in calls)
            assert len(keys) == 3 * TURNS
            twice = [key for key, count in keys.items() if count > 1]
            pids = {key: {pid for _, other, pid in calls if other == key} for key in twice}
            assert all(count <= 2 for count in keys.values())
            assert all(len(of) == 2 for of in pids.values()), "a process does nothing twice"
            async with httpx.AsyncClient(timeout=30) as http:
                for client in clients:
                    history = (await http.get(f"{workers[client.number % 2].url}/sessions/s{client.number}")).json()
                    assert history[0] == f"user: {client.id}"
                    assert history[-1] == f"assistant: 3 steps for {client.id}"
                    assert len(history) == 8
        finally:
            for worker in workers:
                if worker.process is not None and worker.process.returncode is None:
                    await worker.end(signal.SIGKILL)

    run(main())


APPROVAL = """if True:
    import asyncio, sys
    sys.path.insert(0, sys.argv[1])
    import httpx, service

    def kinds(reply):
        return [line.removeprefix("event: ") for line in reply.text.splitlines() if line.startswith("event: ")]

    async def main():
        async with service.lifespan(service.app), httpx.AsyncClient(transport=httpx.ASGITransport(service.app), base_url="http://here") as http:
            begun = await http.post("/sessions/ada/turns", params={"text": "refund order 7", "id": "t1"})
            print(begun.status_code, kinds(begun), '"status":"interrupted"' in begun.text)
            print([(one["id"], one["session"]) for one in (await http.get("/turns")).json()])
            last = [line.removeprefix("id: ") for line in begun.text.splitlines() if line.startswith("id: ")][-1]
            print((await http.post("/turns/t1/answers", json={"approve": True})).status_code)
            while (await service.app.state.runner.info("t1")).status != "completed":
                await asyncio.sleep(0.01)
            rest = await http.get("/turns/t1/events", headers={"Last-Event-ID": last})
            print(kinds(rest), '"status":"completed"' in rest.text, "order 7 is refunded" in rest.text)
            print((await http.post("/turns/t1/answers", json={"approve": True})).status_code, (await http.get("/turns/t2/events")).status_code)
            print((await http.get("/health/live")).status_code, (await http.get("/health/ready")).status_code)
            service.app.state.leaving.set()
            print((await http.get("/health/ready")).status_code, (await http.post("/sessions/ada/turns", params={"text": "x"})).status_code)

    asyncio.run(main())
"""


def test_a_turn_waits_for_an_approval_that_comes_by_a_second_request(tmp_path):
    examples = Path(__file__).parents[1] / "examples"
    done = subprocess.run([sys.executable, "-c", APPROVAL, str(examples)], cwd=tmp_path, capture_output=True, text=True, timeout=50, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "200 ['message', 'interrupted', 'end'] True",
        "[('t1', 'ada')]",
        "202",
        "['message', 'message', 'end'] True True",
        "409 404",
        "200 200",
        "503 503",
    ]
