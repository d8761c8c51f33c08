"""`logger=`, and the extension by which a client sees what happens inside a task."""

import logging

from offbook.actors import ChatModelAgent
from offbook.runtime import ScriptedModel, ToolCalls
from offbook.runtime.a2a import STEPS_EXTENSION, A2AClient, TaskStatusUpdateEvent, a2a_app
from tests.doubles.a2a import ByHand, scripted, serving, state_of


def test_a_server_logs_to_the_logger_that_it_was_given(run, caplog):
    async def fails(input, context):
        raise ValueError("secret")
        yield

    async def main():
        async with (
            serving(a2a_app(scripted(fails), logger=logging.getLogger("mine"))) as url,
            ByHand(url) as client,
        ):
            assert state_of(await client.send()) == "FAILED"
            await client.call("SendMessage", {"message": 7})

    run(main())
    assert {record.name for record in caplog.records} & {"mine", "offbook.a2a"} == {"mine"}
    assert len([record for record in caplog.records if record.name == "mine"]) == 2


def test_a_transfer_is_a_status_update_for_clients_that_ask_for_it(run):
    team = ChatModelAgent(
        name="desk",
        description="Passes on.",
        model=ScriptedModel([ToolCalls("transfer_to_agent", {"agent_name": "clerk"})] * 2),
        sub_agents=[
            ChatModelAgent(name="clerk", description="Answers.", model=ScriptedModel(["done"] * 2))
        ],
    )

    async def main():
        async with serving(a2a_app(team)) as url:
            for extensions, transfers in (((STEPS_EXTENSION,), ["clerk"]), ((), [])):
                async with A2AClient(url, extensions=extensions) as client:
                    events = [event async for event in client.stream("hello")]
                steps = [
                    event.metadata[STEPS_EXTENSION]
                    for event in events
                    if isinstance(event, TaskStatusUpdateEvent)
                    and STEPS_EXTENSION in event.metadata
                ]
                assert [step["transfer"] for step in steps if "transfer" in step] == transfers

    run(main())
