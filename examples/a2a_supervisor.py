"""A third-party agent in a Supervisor that is itself served over Agent2Agent.

The agent asks a question. While it waits for the answer, all three programs restart.
The third-party agent uses the official SDK; the three programs communicate only by Agent2Agent.

pip install 'offbook[a2a]'
python examples/a2a_supervisor.py
"""

import asyncio
import logging
import tempfile
from pathlib import Path

from a2a.helpers import new_task_from_user_message
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import AgentCapabilities, AgentCard, AgentInterface, AgentSkill, Part
from models import model
from serving import free_port, serving
from show import ask, show
from starlette.applications import Starlette

from offbook import ChatModelAgent, RemoteAgent, Runner, SQLiteStore, Supervisor, ToolCalls
from offbook.runtime.a2a import AgentCardSettings, RemoteInterrupt, a2a_app

CARD = AgentCardSettings(name="Theatre", push_notifications=False)
THEIR_TASKS = InMemoryTaskStore()  # stands in for the third party's database


class Costumes(AgentExecutor):
    """The third-party agent: it asks for the size, then has the costume."""

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        task = context.current_task
        if task is None:
            assert context.message is not None
            task = new_task_from_user_message(context.message)
            task.id, task.context_id = (
                context.task_id or task.id,
                context.context_id or task.context_id,
            )
            await event_queue.enqueue_event(task)
        updater = TaskUpdater(event_queue, task.id, task.context_id)
        if context.current_task is None:
            await updater.requires_input(updater.new_agent_message([Part(text="Which size?")]))
            return
        await updater.add_artifact(
            [Part(text=f"A red cloak, size {context.get_user_input()}.")],
            name="costume",
            last_chunk=True,
        )
        await updater.complete()

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        await TaskUpdater(event_queue, context.task_id or "", context.context_id or "").cancel()


def theirs(port: int) -> Starlette:
    """The third party's program."""
    door = AgentInterface(
        url=f"http://127.0.0.1:{port}/rpc", protocol_binding="JSONRPC", protocol_version="1.0"
    )
    card = AgentCard(
        name="Costumes",
        description="has costumes",
        version="1",
        supported_interfaces=[door],
        capabilities=AgentCapabilities(streaming=True),
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
        skills=[
            AgentSkill(
                id="costumes",
                name="Costumes",
                description="finds a costume of your size",
                tags=["theatre"],
            )
        ],
    )
    handler = DefaultRequestHandler(Costumes(), THEIR_TASKS, card)
    return Starlette(
        routes=[*create_agent_card_routes(card), *create_jsonrpc_routes(handler, "/rpc")]
    )


async def evening(folder: Path, ports: tuple[int, int], answer: str | None) -> str:
    """Run all three programs once.

    Without an answer, the guest sends the first message. Returns the question at the end.
    """
    costumes = RemoteAgent(
        f"http://127.0.0.1:{ports[0]}", name="Costumes", description="has costumes of all sizes"
    )
    replies = (
        [ToolCalls(transfer_to_agent={"agent_name": "Costumes"})]
        if answer is None
        else ["Your costume hangs in the wardrobe."]
    )
    director = ChatModelAgent(
        name="Director",
        description="runs the theatre",
        instruction="Send for what is missing.",
        model=model(*replies),
    )
    team = Supervisor(supervisor=director, sub_agents=[costumes])
    async with (
        SQLiteStore(folder / "ours.db") as ours,
        SQLiteStore(folder / "guest.db") as own,
        serving(theirs(ports[0]), ports[0]),
        serving(a2a_app(team, store=ours, card=CARD), ports[1]) as url,
    ):
        runner = Runner(RemoteAgent(url, name="Theatre"), store=own)
        run = (
            runner.query("I need a costume", checkpoint_id="evening")
            if answer is None
            else runner.resume("evening", data=answer)
        )
        async for event in run:
            show(event)
        return "".join(
            one.info.text for one in (await run).interrupts if isinstance(one.info, RemoteInterrupt)
        )


def main() -> None:
    logging.getLogger("a2a").setLevel(logging.ERROR)  # the program stops while streams are open
    with tempfile.TemporaryDirectory() as folder:
        ports = free_port(), free_port()
        question = asyncio.run(evening(Path(folder), ports, None))
        print("(everything is started anew)")
        asyncio.run(evening(Path(folder), ports, ask(question, "42")))


if __name__ == "__main__":
    main()
