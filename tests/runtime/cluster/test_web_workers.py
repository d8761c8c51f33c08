"""Without a cluster: three web workers that share one PostgreSQL, under load, while they are killed
and replaced. No message is lost, and none is worked on twice.
"""

import asyncio
import itertools
import os
import signal
import sys
from collections import Counter
from pathlib import Path

import aiohttp
import pytest

ROOT = Path(__file__).parents[3]
PROGRAM = ROOT / "tests/programs/web_worker.py"
SESSIONS, MESSAGES, STEPS = 8, 6, 4

pytestmark = [pytest.mark.slow, pytest.mark.timeout(150)]


class Workers:
    """The workers, and a balancer that knows no sessions: each request goes to the next one."""

    def __init__(self, dsn, ledger):
        self.arguments = (dsn, str(ledger))
        self.at = []
        self.turn = itertools.count()

    async def start(self):
        env = {**os.environ, "PYTHONPATH": str(ROOT)}
        process = await asyncio.create_subprocess_exec(
            sys.executable, str(PROGRAM), *self.arguments, stdout=asyncio.subprocess.PIPE, env=env
        )
        port = int(await process.stdout.readline())
        self.at.append((process, port))

    async def replace(self, how):
        """One ends as it is told, and another one is started."""
        process, _ = self.at.pop(0)
        process.send_signal(how)
        await self.start()
        await self.over(process)

    async def over(self, process):
        await process.wait()
        process._transport.close()

    async def end(self):
        for process, _ in self.at:
            process.terminate()
        await asyncio.gather(*(self.over(process) for process, _ in self.at))

    def next(self):
        return self.at[next(self.turn) % len(self.at)][1]


async def converse(http, workers, session):
    """Send messages, each until it is answered."""
    for number in range(MESSAGES):
        while True:
            url = f"http://127.0.0.1:{workers.next()}/sessions/{session}"
            try:
                async with http.post(
                    url, params={"text": f"m{number}", "id": f"{session}-{number}"}
                ) as reply:
                    if reply.status == 200:
                        assert await reply.text() == f"done: m{number}"
                        break
            except aiohttp.ClientError:
                pass
            await asyncio.sleep(0.05)


async def under_load(dsn, ledger):
    workers = Workers(dsn, ledger)
    try:
        await asyncio.gather(*(workers.start() for _ in range(3)))
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=20)) as http:
            talks = [
                asyncio.ensure_future(converse(http, workers, f"web{number}"))
                for number in range(SESSIONS)
            ]
            for how in (signal.SIGKILL, signal.SIGTERM, signal.SIGKILL):
                before = len(ledger.read_text().splitlines()) if ledger.exists() else 0
                while not ledger.exists() or len(ledger.read_text().splitlines()) < before + 20:
                    await asyncio.sleep(0.02)
                    if all(talk.done() for talk in talks):
                        break
                await workers.replace(how)
            await asyncio.gather(*talks)
            histories = []
            for number in range(SESSIONS):
                async with http.get(
                    f"http://127.0.0.1:{workers.next()}/sessions/web{number}"
                ) as reply:
                    histories.append(await reply.json())
            return histories
    finally:
        await workers.end()


def test_three_workers_are_killed_and_replaced_under_load_and_no_message_is_lost(
    run, postgres_server, tmp_path
):
    ledger = tmp_path / "ledger"
    histories = run(under_load(postgres_server.dsn, ledger))
    assert histories == [[f"m{number}" for number in range(MESSAGES)]] * SESSIONS
    steps = Counter(tuple(line.split()[:2]) for line in ledger.read_text().splitlines())
    assert len(steps) == SESSIONS * MESSAGES * STEPS
    assert max(steps.values()) <= 3, (
        "a step is made again only by who takes over from a worker that was killed during it"
    )
    again = sum(steps.values()) - len(steps)
    assert again <= 3 * SESSIONS
