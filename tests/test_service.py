"""examples/service.py: two workers on one store, that are killed, drained and started again under
load, with approvals and queued turns; and one by itself.

Each turn that was accepted is known to both workers at once, ends once, and each client sees all of
it, and no secret.
"""

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
SESSIONS = 8  # two turns each: one of them is queued
PATIENCE = 120


class Worker:
    """One process of the service, which comes back on the same port."""

    def __init__(self, folder, recipe):
        self.folder, self.recipe, self.port, self.process = (
            folder,
            json.dumps(recipe),
            free_port(),
            None,
        )
        self.url = f"http://127.0.0.1:{self.port}"

    async def start(self):
        command = (
            sys.executable,
            str(PROGRAM),
            str(self.port),
            str(self.folder / "log"),
            self.recipe,
        )
        with (self.folder / f"errors-{self.port}").open("ab") as errors:
            self.process = await asyncio.create_subprocess_exec(
                *command, env={**os.environ, "RECOVER_SECONDS": "0.5"}, stderr=errors
            )
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

    @property
    def errors(self):
        return (self.folder / f"errors-{self.port}").read_text()


class Client:
    """Starts one turn and follows it to its end, at whichever worker answers, as an EventSource
    does.
    """

    def __init__(self, workers, number):
        self.workers, self.id, self.number = workers, f"turn-{number}", number
        self.at = number
        self.seen, self.ends, self.raw, self.deltas, self.texts = [], [], "", [], []
        self.reconnected = 0

    async def follow(self):
        async with httpx.AsyncClient(timeout=httpx.Timeout(30, read=20)) as http:
            while not any(end["status"] == "completed" for end in self.ends):
                await self._start(http)
                while not self.ends:
                    await self._once(http, self._listen)
                    self.reconnected += 1
                # It was lost while it was queued: nothing of it was shown, and it is sent again.
                if self.ends[-1]["status"] != "completed":
                    assert self.ends.pop()["status"] in ("cancelled", "failed")
                    assert not self.seen

    async def _start(self, http):
        while not await self._once(http, self._post):
            pass

    async def _once(self, http, ask):
        worker, self.at = self.workers[self.at % 2], self.at + 1
        try:
            done = await ask(http, worker)
        except httpx.TransportError:
            done = False
        if not done:
            await asyncio.sleep(0.05)
        return done

    async def _post(self, http, worker):
        reply = await http.post(
            f"{worker.url}/sessions/s{self.number % SESSIONS}/turns",
            params={"text": self.id, "id": self.id},
        )
        assert reply.status_code in (202, 503), reply.text
        return reply.status_code == 202

    async def _listen(self, http, worker):
        headers = {"Last-Event-ID": str(self.seen[-1])} if self.seen else {}
        async with http.stream(
            "GET", f"{worker.url}/turns/{self.id}/events", headers=headers
        ) as reply:
            assert reply.status_code in (200, 500, 503), f"{self.id} was accepted, and is unknown"
            if reply.status_code == 200:
                await self._read(reply)
            return reply.status_code == 200

    async def _read(self, reply):
        kind = number = None
        async for line in reply.aiter_lines():
            self.raw += line
            if line.startswith("id: "):
                number = int(line[4:])
            elif line.startswith("event: "):
                kind = line[7:]
            elif line.startswith("data: "):
                data = json.loads(line[6:])
                if kind == "end":
                    self.ends.append(data)
                    continue
                self.seen.append(number)
                if kind == "delta":
                    self.deltas.append(data["delta"]["text"])
                elif kind == "message":
                    self.texts.append(data["message"]["text"])


async def approve_all(workers, approved):
    """Somebody who says yes to whatever waits, at either worker, and sometimes twice."""
    at = 0
    async with httpx.AsyncClient(timeout=10) as http:
        while True:
            at += 1
            with contextlib.suppress(httpx.TransportError):
                reply = await http.get(f"{workers[at % 2].url}/turns")
                for turn in reply.json() if reply.status_code == 200 else ():
                    for one in turn["waits_for"]:
                        answer = {"interrupt": one["interrupt"], "approve": True}
                        said = await http.post(
                            f"{workers[(at + 1) % 2].url}/turns/{turn['id']}/answers", json=answer
                        )
                        approved[said.status_code] += 1
            await asyncio.sleep(0.02)


@pytest.mark.slow
@pytest.mark.timeout(200)
@pytest.mark.parametrize("kind", ["sqlite", "postgres", "redis"])
def test_two_workers_are_killed_drained_and_started_again_and_nothing_is_lost_or_shown_twice(
    run, tmp_path, store_recipe, kind
):
    async def main():
        recipe = store_recipe(kind, "service")
        workers = [Worker(tmp_path, recipe), Worker(tmp_path, recipe)]
        approved, approving = Counter(), None
        try:
            await asyncio.gather(*(worker.start() for worker in workers))
            clients = [Client(workers, number) for number in range(TURNS)]
            approving = asyncio.ensure_future(approve_all(workers, approved))
            following = asyncio.gather(*(client.follow() for client in clients))
            log = tmp_path / "log"

            async def worked(times):
                while not log.exists() or len(log.read_text().splitlines()) < times:
                    assert not following.done() or following.exception() is None, (
                        following.exception()
                    )
                    await asyncio.sleep(0.02)

            async with asyncio.timeout(PATIENCE):
                await worked(4)
                await workers[0].end(signal.SIGKILL)  # in the middle
                await workers[0].start()
                await worked(16)
                assert await workers[1].end(signal.SIGTERM) in (
                    0,
                    -signal.SIGTERM,
                )  # a deploy, with streams open: it does not wait for their clients
                await workers[1].start()
                await following
            for client in clients:
                assert client.seen == sorted(set(client.seen)), client.id  # in order, none twice
                assert [end["status"] for end in client.ends] == ["completed"]
                assert client.ends[0]["text"] == f"3 steps for {client.id}"
                assert client.texts.count(f"3 steps for {client.id}") == 1
                assert "secret" not in client.raw
                assert "order" not in client.raw
                assert {delta.strip() for delta in client.deltas} <= set(
                    f"3 steps for {client.id}".split()
                )
            assert sum(client.reconnected > 1 for client in clients) > 0
            # Each step was done, and what was done twice bears the same key: the one that was under
            # way when its process was killed.
            calls = [line.split() for line in log.read_text().splitlines()]
            keys = Counter(key for _, key, _ in calls)
            assert len(keys) == 2 * TURNS
            pids = {key: {pid for _, other, pid in calls if other == key} for key in keys}
            assert all(count <= 2 for count in keys.values())
            assert all(len(pids[key]) == count for key, count in keys.items()), (
                "a process does nothing twice"
            )
            async with httpx.AsyncClient(timeout=30) as http:
                for number in range(SESSIONS):
                    history = (
                        await http.get(f"{workers[number % 2].url}/sessions/s{number}")
                    ).json()
                    asked = {
                        line.removeprefix("user: ") for line in history if line.startswith("user: ")
                    }
                    assert asked == {f"turn-{one}" for one in range(number, TURNS, SESSIONS)}
                    assert {f"assistant: 3 steps for {one}" for one in asked} <= set(history)
                    assert len(history) == 8 * len(asked)
        finally:
            if approving is not None:
                approving.cancel()
                await asyncio.wait((approving,))
            for worker in workers:
                if worker.process is not None and worker.process.returncode is None:
                    await worker.end(signal.SIGKILL)
        for worker in workers:
            assert "Traceback" not in worker.errors.replace("secret-error", "")

    run(main())


@pytest.mark.parametrize("kind", ["sqlite", "postgres", "redis"])
def test_a_turn_that_one_worker_has_accepted_is_known_to_the_other_one_at_once(
    run, tmp_path, store_recipe, kind
):
    async def main():
        recipe = store_recipe(kind, "service")
        workers = [Worker(tmp_path, recipe), Worker(tmp_path, recipe)]
        approving = None
        try:
            await asyncio.gather(*(worker.start() for worker in workers))
            async with httpx.AsyncClient(timeout=30) as http, asyncio.timeout(PATIENCE):
                for number in range(3):  # of one session: the second and the third are queued
                    begun = await http.post(
                        f"{workers[0].url}/sessions/ada/turns",
                        params={"text": f"t{number}", "id": f"t{number}"},
                    )
                    assert (begun.status_code, begun.json()) == (202, {"id": f"t{number}"})
                    async with http.stream(
                        "GET", f"{workers[1].url}/turns/t{number}/events"
                    ) as there:
                        assert there.status_code == 200
                    async with http.stream(
                        "GET", f"{workers[0].url}/turns/t{number}/events"
                    ) as here:
                        assert here.status_code == 200
                assert (await http.get(f"{workers[1].url}/turns/never/events")).status_code == 404
                approving = asyncio.ensure_future(approve_all(workers, Counter()))
                clients = [Client(workers, number) for number in range(3)]
                for client, worker in zip(
                    clients, (workers[0], workers[1], workers[0]), strict=True
                ):
                    client.id = f"t{client.number}"
                    await client._listen(http, worker)
                    assert [end["status"] for end in client.ends] == ["completed"]
                    assert client.texts == [f"3 steps for {client.id}"]
                    assert "secret" not in client.raw
                assert "".join(clients[2].deltas) in (f"3 steps for {clients[2].id}", ""), (
                    "all of its words, or none if it was over"
                )
        finally:
            if approving is not None:
                approving.cancel()
                await asyncio.wait((approving,))
            for worker in workers:
                if worker.process is not None:
                    await worker.end(signal.SIGTERM)
        for worker in workers:
            assert "Traceback" not in worker.errors, worker.errors

    run(main())


APPROVAL = """if True:
    import asyncio, sys
    sys.path.insert(0, sys.argv[1])
    import httpx, service

    def kinds(text):
        return [line.removeprefix("event: ") for line in text.splitlines() if line.startswith("event: ")]

    async def main():
        async with service.lifespan(service.app), httpx.AsyncClient(transport=httpx.ASGITransport(service.app), base_url="http://here") as http:
            begun = await http.post("/sessions/ada/turns", params={"text": "refund order 7", "id": "t1"})
            print(begun.status_code, begun.json())
            following = asyncio.create_task(http.get("/turns/t1/events"))
            while not (waiting := (await http.get("/turns")).json()):
                await asyncio.sleep(0.01)
            (turn,) = waiting
            print((turn["id"], turn["session"]), following.done())
            answer = {"interrupt": turn["waits_for"][0]["interrupt"], "approve": True}
            print((await http.post("/turns/t1/answers", json={"approve": True})).status_code)
            print((await http.post("/turns/t1/answers", json=answer)).status_code)
            whole = (await following).text
            print(kinds(whole), '"status":"completed"' in whole, "Done: order 7 is refunded" in whole, "arguments" in whole)
            first = [line.removeprefix("id: ") for line in whole.splitlines() if line.startswith("id: ")][0]
            print(kinds((await http.get("/turns/t1/events", headers={"Last-Event-ID": first})).text))
            print((await http.post("/turns/t1/answers", json=answer)).status_code, (await http.get("/turns/t2/events")).status_code)
            print((await http.post("/sessions/bob", params={"text": "hello"})).json())
            print((await http.get("/health/live")).status_code, (await http.get("/health/ready")).status_code)
            service.app.state.shutdown.set()
            print((await http.get("/health/ready")).status_code, (await http.post("/sessions/ada/turns", params={"text": "x"})).status_code)

    asyncio.run(main())
"""


def test_a_turn_waits_for_an_approval_that_comes_by_a_second_request(tmp_path):
    examples = Path(__file__).parents[1] / "examples"
    done = subprocess.run(
        [sys.executable, "-c", APPROVAL, str(examples)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "202 {'id': 't1'}",
        "('t1', 'ada') False",
        "422",
        "202",
        "['interrupted', 'message', 'end'] True True False",
        "['message', 'end']",
        "409 404",
        "You said: hello",
        "200 200",
        "503 503",
    ]
