"""Work that is repeated by an actor of a system."""

import asyncio

from offbook.runtime import ActorSystem
from offbook.runtime.run.recovery_loop import Repeating
from offbook.runtime.testing import ManualClock


def test_a_time_that_comes_while_it_is_being_stopped_is_no_error(run):
    """Between its stop and its last hook, its timer is still set."""

    async def main():
        clock, worked = ManualClock(), asyncio.Event()

        async def work():
            worked.set()

        async with ActorSystem(clock=clock) as system:
            repeating = Repeating(system, work, 10.0, "It could not be done")
            await worked.wait()
            await asyncio.sleep(0)  # it has set its timer
            stopped = repeating.stop()
            clock.advance(20)
            await stopped
            assert not system.roots

    run(main())
