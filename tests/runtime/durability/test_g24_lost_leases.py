"""G24: a run whose lease is over does not wait for a store that does not answer."""

import time

import pytest

from offbook.actors import Agent
from offbook.runtime import ActorSystem, AgentEvent, PostgresStore, RedisStore, RunLost, Runner
from tests.programs.lossy import LossyLine

LEASE = 2.0


class Talks(Agent):
    """Says one thing, lets the line hang, and says another one."""

    def __init__(self, line):
        super().__init__(name="A")
        self.line = line

    async def run(self, asked, context):
        yield AgentEvent.say("one")
        self.line.hang()
        yield AgentEvent.say("two")


@pytest.mark.parametrize("kind", ["redis", "postgres"])
def test_g24_a_run_whose_lease_is_over_stops_waiting_for_its_store(run, request, kind, namespaces):
    server = request.getfixturevalue(f"{kind}_server")
    line = LossyLine(server.port)

    def store():
        if kind == "redis":
            return RedisStore(
                server.url.replace(str(server.port), str(line.port)),
                prefix=f"lost{next(namespaces)}:",
            )
        return PostgresStore(
            server.dsn.replace(str(server.port), str(line.port))
            + " sslmode=disable gssencmode=disable",
            prefix=f"lost{next(namespaces)}_",
        )

    async def main():
        async with store() as kept, ActorSystem(lease_seconds=LEASE) as system:
            running = Runner(Talks(line), store=kept, durability="step", system=system).query("go")
            started = time.monotonic()
            result = await running
            assert time.monotonic() - started < LEASE + 1
            assert isinstance(result.error, RunLost)
            assert "has not answered" in str(result.error)
            line.go_on()

    try:
        run(main())
    finally:
        line.close()
