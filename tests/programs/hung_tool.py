"""Programs with a tool that hangs in its thread for ever, each of which has to end by itself.

The argument says where its run lives.
"""

import asyncio
import atexit
import concurrent.futures
import inspect
import sys
import threading
import time

from offbook.actors import ChatModelAgent, ToolContext, tool
from offbook.runtime import ActorSystem, Runner, ScriptedModel, ToolCalls

STOP_TIMEOUT = 0.3
BEGUN = threading.Event()


def cashier(**options):
    @tool(**options)
    def charge() -> str:
        """Charge the card."""
        print("ready", flush=True)
        BEGUN.set()
        while True:
            time.sleep(1000)

    return ChatModelAgent(
        name="Cashier",
        model=ScriptedModel([ToolCalls(charge={}), "The card may have been charged."]),
        tools=[charge],
    )


def on_the_loop():
    """`async with`: the call timed out, and the run went on."""

    async def main():
        async with ActorSystem(stop_timeout=STOP_TIMEOUT) as system:
            print((await Runner(cashier(timeout=0.05), system=system).query("go")).final_output)

    asyncio.run(main())


def left_on_the_loop():
    """`async with`, left while the call is under way."""

    async def main():
        async with ActorSystem(stop_timeout=STOP_TIMEOUT) as system:
            run = Runner(cashier(), system=system).query("go")
            while not BEGUN.is_set():
                await asyncio.sleep(0)
            assert run.status == "running"

    asyncio.run(main())


def in_thread():
    with ActorSystem.in_thread(stop_timeout=STOP_TIMEOUT) as system:
        print(Runner(cashier(timeout=0.05), system=system).query("go").result().final_output)


def default():
    """In the default system's thread, with nothing to be left."""
    print(Runner(cashier(timeout=0.05)).query("go").result().final_output)


def default_left():
    """The program ends while its run waits for the call."""
    run = Runner(cashier()).query("go")
    run.start()
    BEGUN.wait()


def own_loop():
    """A loop of the program's, without a system that anybody leaves."""
    print(asyncio.run(main_without_system()).final_output)


async def main_without_system():
    return await Runner(cashier(timeout=0.05)).query("go")


def interrupted():
    """Ctrl-C comes from the test, while the default system's run waits for the call."""
    Runner(cashier()).query("go").result()


def interrupted_on_the_loop():
    async def main():
        async with ActorSystem(stop_timeout=STOP_TIMEOUT) as system:
            await Runner(cashier(), system=system).query("go")

    asyncio.run(main())


def slow_at_the_end():
    """The call ends soon after the program: it is waited for."""

    @tool(timeout=0.02)
    def charge(context: ToolContext) -> str:
        """Charge the card."""
        context.cancelled.wait()
        time.sleep(0.1)
        print("charged", flush=True)
        return "charged"

    agent = ChatModelAgent(
        name="Cashier",
        model=ScriptedModel([ToolCalls(charge={}), "not waited for"]),
        tools=[charge],
    )
    print(Runner(agent).query("go").result().final_output, flush=True)


def last_moment():
    """The default system's loop wants its first worker thread when the interpreter is ending."""
    agent = cashier()
    asked = threading.Event()

    class Late(ScriptedModel):
        async def generate(self, request):
            asked.set()
            await asyncio.wrap_future(ending)
            return await super().generate(request)

    ending = concurrent.futures.Future()
    late = ChatModelAgent(
        name="Cashier", model=Late([ToolCalls(charge={}), "done"]), tools=agent.tools
    )
    run = Runner(late).query("go")
    run.start()
    asked.wait()

    def end():
        ending.set_result(None)
        BEGUN.wait(0.3)

    atexit.register(end)


if __name__ == "__main__":
    # The systems that no program names have the same limit here, so that the tests need not wait
    # for ten seconds.
    inspect.unwrap(ActorSystem.__init__).__kwdefaults__["stop_timeout"] = STOP_TIMEOUT
    globals()[sys.argv[1]]()
