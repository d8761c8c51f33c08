"""G10 with asks whose askers have given up: what waits on in the mailbox is the message, and
nothing of the asker.
"""

import asyncio
import gc

import pytest

from offbook.runtime import ActorSystem, AskTimeout
from offbook.runtime.testing import ManualClock

MANY = 2_000


@pytest.mark.parametrize("how", ["request", "cancelled", "ask"])
def test_g10_an_ask_that_has_timed_out_leaves_an_envelope_and_no_more(run, kind, gate, how):
    class Held(kind):
        def __init__(self):
            super().__init__()
            self.seen = 0

        async def on_receive(self, message):
            if message == "hold":
                await gate.wait()
            elif message == "fail":
                self.seen += 1
                raise ValueError(message)
            return self.seen

    async def ask(ref, clock):
        if how == "ask":
            await asyncio.to_thread(ask_in_thread, ref)
            return
        requests = [
            asyncio.ensure_future(ref.request("fail", timeout=30 if how == "request" else None))
            for _ in range(MANY)
        ]
        await asyncio.sleep(0)
        clock.advance(30)
        if how == "cancelled":
            for request in requests:
                request.cancel()
        outcomes = await asyncio.gather(*requests, return_exceptions=True)
        assert {type(outcome) for outcome in outcomes} == {
            AskTimeout if how == "request" else asyncio.CancelledError
        }

    def ask_in_thread(ref):
        for _ in range(MANY):
            with pytest.raises(AskTimeout):
                ref.ask("fail", timeout=0)

    async def main():
        clock = ManualClock()
        async with ActorSystem(clock=clock) as system:
            ref = system.spawn(Held)
            ref.tell("hold")
            await gate.reached()
            gc.collect()
            before = len(gc.get_objects())
            await ask(ref, clock)
            # What woke this task holds the requests until its turn has ended.
            await asyncio.sleep(0)
            gc.collect()
            assert len(gc.get_objects()) - before < 1.5 * MANY
            gate.open()
            assert await ref.request("seen") == MANY, (
                "all were handled, and what they raised was their askers'"
            )
            assert ref.is_alive()

    run(main())
