"""`RemoteAgent`, asked over real HTTP at a server that was made with the official SDK: in
workflows, as a sub-agent, as a tool, in a Supervisor, in a session.
"""

import subprocess
import sys

import pytest

from offbook.actors import ChatModelAgent, Loop, Parallel, RemoteAgent, Sequential, Supervisor
from offbook.runtime import (
    AgentEvent,
    CustomAction,
    FilePart,
    MemoryStore,
    Message,
    RunCancelled,
    Runner,
    ScriptedModel,
    TextPart,
    ToolCalls,
    UsageError,
)
from offbook.runtime.a2a import (
    A2AClient,
    A2AMessage,
    Artifact,
    ClientLimits,
    RemoteTaskError,
    Status,
    TaskStatus,
)
from offbook.runtime.a2a import TextPart as WireText
from offbook.runtime.a2a.conversion import card_from_wire
from tests.doubles.a2a_servers import SdkServer, data, text


async def echoes(job):
    """Says what it was told, in pieces; the contexts that it was in are in its metadata."""
    if job.said.startswith("plain"):
        return await job.reply("plain answer")
    updater = await job.begin()
    await updater.start_work(updater.new_agent_message([text("at work")]))
    if job.said.startswith("fail"):
        return await updater.failed(updater.new_agent_message([text("no\nsuch thing")]))
    if job.said.startswith("reject"):
        return await updater.reject(updater.new_agent_message([text("not mine")]))
    if job.said.startswith("finish"):
        return await updater.complete(updater.new_agent_message([text("the end says it")]))
    for index, word in enumerate(("heard: ", job.said)):
        await updater.add_artifact(
            [text(word)], artifact_id="out", name="out", append=bool(index), last_chunk=index == 1
        )
    await updater.complete()


@pytest.fixture(params=[True, False], ids=["streams", "polled"])
def server(request):
    with SdkServer(echoes, streaming=request.param) as made:
        yield made


def remote(server, **options):
    return RemoteAgent(server.url, **{"name": "Remote", "description": "echoes", **options})


def said(result):
    return [
        (event.agent_name, event.message.role, event.message.text)
        for event in result.events
        if event.message is not None
    ]


def test_an_artifact_is_a_message(run, server):
    async def main():
        result = await Runner(remote(server)).query("hello")
        assert said(result) == [("Remote", "assistant", "heard: hello")]
        assert result.text == "heard: hello"

    run(main())


def test_a_plain_message_is_a_message(run, server):
    async def main():
        assert (await Runner(remote(server)).query("plain")).text == "plain answer"

    run(main())


def test_what_the_end_of_the_task_says_is_a_message(run, server):
    async def main():
        assert said(await Runner(remote(server)).query("finish")) == [
            ("Remote", "assistant", "the end says it")
        ]

    run(main())


def test_what_it_says_while_it_works_is_no_message(run):
    async def main(server):
        result = await Runner(remote(server)).query("hello")
        assert [event.action for event in result.events if event.action is not None] == [
            CustomAction(Status("at work"))
        ]

    with SdkServer(echoes) as server:
        run(main(server))


def test_streaming_shows_pieces_before_the_message(run):
    async def main(server):
        events = [event async for event in Runner(remote(server)).query("hello", streaming=True)]
        shown = [
            event.delta.content if event.delta else event.text
            for event in events
            if event.delta or event.message
        ]
        assert shown == ["heard: ", "hello", "heard: hello"]

    with SdkServer(echoes) as server:
        run(main(server))


@pytest.mark.parametrize(
    ("query", "state", "what"),
    [("fail", "failed", "failed: no such thing"), ("reject", "rejected", "was rejected: not mine")],
)
def test_a_task_that_fails_or_is_rejected_is_an_error_event(run, server, query, state, what):
    async def main():
        events = [event async for event in Runner(remote(server)).query(query)]
        error = events[-1].error
        assert isinstance(error, RemoteTaskError)
        assert str(error) == f"the task of the remote agent 'Remote' {what}"
        assert (error.state, error.agent, bool(error.task_id)) == (state, "Remote", True)

    run(main())


def test_it_stands_in_a_sequential_and_what_it_says_is_told_to_the_next(run, server):
    async def main():
        model = ScriptedModel([Message.assistant("noted")])
        agent = Sequential(
            name="Both", sub_agents=[remote(server), ChatModelAgent(name="Next", model=model)]
        )
        result = await Runner(agent).query("hello")
        assert said(result) == [
            ("Remote", "assistant", "heard: hello"),
            ("Next", "assistant", "noted"),
        ]
        assert model.requests[0].messages[-1].text == "For context: [Remote] said: heard: hello."

    run(main())


def test_it_stands_in_a_parallel_and_many_run_at_once(run, server):
    async def main():
        agent = Parallel(
            name="All", sub_agents=[remote(server, name=f"R{index}") for index in range(5)]
        )
        result = await Runner(agent).query("hello")
        assert sorted(said(result)) == [
            (f"R{index}", "assistant", "heard: hello") for index in range(5)
        ]

    run(main())


def test_it_stands_in_a_loop_in_one_context(run):
    async def main(server):
        model = ScriptedModel([Message.assistant("first"), Message.assistant("second")])
        agent = Loop(
            name="L",
            sub_agents=[ChatModelAgent(name="Asks", model=model), remote(server)],
            max_iterations=2,
        )
        result = await Runner(agent).query("hello")
        assert [text for who, _, text in said(result) if who == "Remote"] == [
            "heard: hello\nFor context: [Asks] said: first.",
            # What is new: the rest is in the context over there.
            "heard: For context: [Asks] said: second.",
        ]
        assert len(contexts) == 2
        assert len(set(contexts)) == 1

    contexts = []

    async def notes(job):
        contexts.append(job.context.context_id)
        await echoes(job)

    with SdkServer(notes) as server:
        run(main(server))


def test_it_takes_over_by_a_transfer(run, server):
    async def main():
        model = ScriptedModel([ToolCalls(("transfer_to_agent", {"agent_name": "Remote"}))])
        router = ChatModelAgent(name="Router", model=model, sub_agents=[remote(server)])
        result = await Runner(router).query("hello")
        assert said(result)[-1][0] == "Remote"
        assert said(result)[-1][2].startswith("heard: hello")
        assert result.last_agent == "Remote"

    run(main())


def test_it_is_a_tool(run, server):
    async def main():
        model = ScriptedModel(
            [ToolCalls(("Remote", {"request": "from the tool"})), Message.assistant("done")]
        )
        agent = ChatModelAgent(name="Outer", model=model, tools=[remote(server).as_tool()])
        result = await Runner(agent).query("hello")
        assert said(result)[1] == ("Outer", "tool", "heard: from the tool")

    run(main())


def test_it_works_for_a_supervisor_and_hands_back(run, server):
    async def main():
        model = ScriptedModel(
            [
                ToolCalls(("transfer_to_agent", {"agent_name": "Remote"})),
                Message.assistant("all done"),
            ]
        )
        team = Supervisor(
            supervisor=ChatModelAgent(name="Boss", model=model), sub_agents=[remote(server)]
        )
        result = await Runner(team).query("hello")
        assert [event.run_path for event in result.events if event.message is not None][-1] == (
            "Boss",
            "Remote",
            "Boss",
        )
        assert result.text == "all done"

    run(main())


def test_a_session_goes_on_in_the_same_context(run):
    seen = []

    async def notes(job):
        seen.append((job.context.context_id, job.said))
        await echoes(job)

    async def main(server):
        session = Runner(remote(server), store=MemoryStore()).session("s")
        await session.query("one")
        await session.query("two")
        await Runner(remote(server)).query("three")
        assert [text for _, text in seen] == ["one", "two", "three"]
        assert seen[0][0] == seen[1][0] != seen[2][0]

    with SdkServer(notes) as server:
        run(main(server))


def test_one_definition_plays_in_many_runs_at_once(run, server):
    async def main():
        runner = Runner(remote(server))
        runs = [runner.query(f"run {index}") for index in range(20)]
        assert [(await one).text for one in runs] == [f"heard: run {index}" for index in range(20)]

    run(main())


def test_files_and_data_become_parts_and_output(run):
    async def makes(job):
        updater = await job.begin()
        assert job.message.parts[1].raw == b"\0\1"
        await updater.add_artifact([data({"n": 3})], artifact_id="d", last_chunk=True)
        await updater.add_artifact(
            [text("see"), job.message.parts[1]], artifact_id="f", last_chunk=True
        )
        await updater.complete()

    async def main(server):
        question = Message.user(
            ["look", FilePart(data=b"\0\1", media_type="application/x-y", name="f.bin")]
        )
        result = await Runner(remote(server)).run([question])
        messages = [event for event in result.events if event.message is not None]
        assert (messages[0].custom_output, messages[0].text) == ({"n": 3}, '{"n": 3}')
        assert messages[1].message.content == (
            TextPart("see"),
            FilePart(data=b"\0\1", media_type="application/x-y", name="f.bin"),
        )

    with SdkServer(makes) as server:
        run(main(server))


def test_input_converter_makes_the_message(run, server):
    async def convert(messages):
        return A2AMessage("user", (WireText(messages[-1].text.upper()),), metadata={"k": 1})

    async def main():
        assert (
            await Runner(remote(server, input_converter=convert)).query("hello")
        ).text == "heard: HELLO"
        result = await Runner(remote(server, input_converter=lambda messages: 7)).query("hello")
        assert isinstance(result.error, UsageError)
        assert "input_converter must return an A2AMessage, a Message or a string, got 7" in str(
            result.error
        )

    run(main())


def test_output_converter_makes_the_events(run):
    kinds = []

    def convert(item):
        kinds.append(type(item))
        return (
            [AgentEvent.say(item.text + "!"), "and more"]
            if isinstance(item, Artifact | A2AMessage)
            else None
        )

    async def main(server):
        result = await Runner(remote(server, output_converter=convert)).query(
            "hello", streaming=True
        )
        assert [text for _, _, text in said(result)] == ["heard: hello!", "and more"]
        assert kinds == [TaskStatus, Artifact]
        result = await Runner(remote(server, output_converter=lambda item: 7)).query("hello")
        assert "output_converter must return an AgentEvent" in str(result.error)

    with SdkServer(echoes) as server:
        run(main(server))


def test_a_card_brings_name_and_description(run, server):
    async def main():
        agent = RemoteAgent(card_from_wire(server.card))
        assert (agent.name, agent.description) == ("Theirs", "an agent of others")
        assert (await Runner(agent).query("hello")).text == "heard: hello"
        fetched = await RemoteAgent.fetch(server.url, description="mine")
        assert (fetched.name, fetched.description) == ("Theirs", "mine")
        async with A2AClient(server.url) as client:
            assert RemoteAgent(await client.card()).name == "Theirs"

    run(main())


def test_a_name_is_made_of_the_address_if_none_is_given():
    assert RemoteAgent("http://agents.example:9999/books").name == "agents_example_9999_books"


def test_a_run_without_a_message_says_so(run, server):
    async def main():
        result = await Runner(remote(server)).run([])
        assert "has no message to send to the remote agent" in str(result.error)

    run(main())


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"url": "agents.example"}, "must be the address"),
        ({"url": "http://x.test", "output_converter": 3}, "must be a function, got"),
        ({"url": 3}, "AgentCard"),
    ],
)
def test_what_is_wrong_is_said_when_it_is_made(arguments, said):
    with pytest.raises(UsageError, match=said):
        RemoteAgent(**arguments)


def test_a_server_that_is_not_there_is_an_error_event(run):
    async def main():
        agent = RemoteAgent("http://127.0.0.1:1", name="Gone", limits=ClientLimits(attempts=1))
        result = await Runner(agent).query("hello")
        assert str(result.error).startswith("the agent at http://127.0.0.1:1 cannot be reached")
        assert not isinstance(result.error, RunCancelled)

    run(main())


def test_importing_the_actors_imports_nothing_of_it():
    code = (
        "import sys, offbook.actors; assert not {'offbook.runtime.a2a', 'a2a', 'httpx', "
        "'google'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
