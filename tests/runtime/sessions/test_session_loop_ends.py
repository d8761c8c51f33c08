"""A turn that was begun and is not awaited, while its event loop ends: that is no failure, and
nothing is logged as one.
"""

import asyncio
import logging

import pytest

from offbook.actors import ChatModelAgent
from offbook.runtime import Actor, ActorFailed, ActorSystem, MemoryStore, Runner, ScriptedModel


@pytest.mark.parametrize("durability", ["interrupt", "step"])
@pytest.mark.parametrize("steps", range(12))
def test_a_turn_that_is_not_awaited_ends_with_its_loop_and_logs_no_error(steps, durability, caplog):
    async def begin():
        runner = Runner(
            ChatModelAgent(name="A", model=ScriptedModel(["hi"])),
            store=MemoryStore(),
            durability=durability,
        )
        run = runner.session("s").query("q")
        for _ in range(steps):
            await asyncio.sleep(0)
        return run

    with caplog.at_level(logging.WARNING):
        asyncio.run(begin())
    assert [record.getMessage() for record in caplog.records] == []


class GivesUp(Actor):
    async def on_receive(self, message):
        raise asyncio.CancelledError


def test_an_actor_that_raises_it_while_its_loop_goes_on_has_failed_and_that_is_logged(caplog):
    async def ask():
        async with ActorSystem() as system:
            await system.spawn(GivesUp).request("?")

    with caplog.at_level(logging.DEBUG), pytest.raises(ActorFailed):
        asyncio.run(ask())
    assert [
        record.levelname
        for record in caplog.records
        if "GivesUp-1 failed in" in record.getMessage()
    ] == ["ERROR"]
