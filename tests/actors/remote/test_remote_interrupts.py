"""What a task of another agent asks for is an interrupt of ours: resumed by a message to the same
task, after a restart of either side, once.
"""

import pytest

from offbook.actors import (
    Approve,
    ChatModelAgent,
    Deny,
    Parallel,
    RemoteAgent,
    Sequential,
    Supervisor,
)
from offbook.runtime import (
    MemoryStore,
    Message,
    ResumeError,
    Runner,
    ScriptedModel,
    SQLiteStore,
    ToolCalls,
)
from offbook.runtime.a2a import (
    A2AMessage,
    A2ARequestError,
    AuthRequired,
    DataPart,
    RemoteInterrupt,
    RemoteQuestion,
    TextPart,
)
from offbook.runtime.a2a.conversion import part_from_wire
from tests.doubles.a2a_servers import SdkServer, data, text


class Asks:
    """An agent of others that asks something first, and notes what it was told, and in which
    tasks.
    """

    def __init__(self, *parts, auth=False, times=1):
        self.parts = parts or (text("which?"),)
        self.auth = auth
        self.times = times
        self.told = []
        self.tasks = []

    async def __call__(self, job):
        updater = await job.begin()
        self.tasks.append(job.context.task_id)
        if not job.is_new:
            self.told.append(tuple(part_from_wire(part) for part in job.message.parts))
        if len(self.told) < self.times:
            message = updater.new_agent_message(list(self.parts))
            return await (
                updater.requires_auth(message) if self.auth else updater.requires_input(message)
            )
        await updater.add_artifact([text("got it")], artifact_id="out", last_chunk=True)
        await updater.complete()


@pytest.fixture(params=[True, False], ids=["streams", "polled"])
def streaming(request):
    return request.param


def remote(server, **options):
    return RemoteAgent(server.url, **{"name": "Remote", **options})


def asked(result):
    (context,) = result.interrupts
    return context.info


def test_input_required_is_an_interrupt_that_says_what_is_asked(run, streaming):
    async def main(server):
        result = await Runner(remote(server), store=MemoryStore()).query("go")
        info = asked(result)
        assert result.status == "interrupted"
        assert isinstance(info, RemoteInterrupt)
        assert str(info) == info.text == "which?"
        assert info.questions == (RemoteQuestion("i1", {"n": 3}, ["a", "b"]),)
        assert info.task_id
        assert info.context_id

    with SdkServer(
        Asks(text("which?"), data({"interruptId": "i1", "info": {"n": 3}, "options": ["a", "b"]})),
        streaming=streaming,
    ) as server:
        run(main(server))


def test_auth_required_says_that_it_is_credentials(run):
    async def main(server):
        runner = Runner(remote(server), store=MemoryStore())
        info = asked(await runner.query("go", checkpoint_id="c"))
        assert isinstance(info, AuthRequired)
        assert isinstance(info.info, RemoteInterrupt)
        assert (await runner.resume("c", data="token")).text == "got it"

    with SdkServer(Asks(auth=True)) as server:
        run(main(server))


@pytest.mark.parametrize(
    ("answer", "parts"),
    [
        ("this", (TextPart("this"),)),
        (Message.user("this"), (TextPart("this"),)),
        ([Message.user("one"), "two"], (TextPart("one"), TextPart("two"))),
        (
            A2AMessage.user([TextPart("x"), DataPart(1)]),
            (TextPart("x"), DataPart(1, "application/json")),
        ),
        ({"i1": "a"}, (DataPart({"answer": "a", "interruptId": "i1"}, "application/json"),)),
        (
            True,
            tuple(
                DataPart({"answer": True, "interruptId": name}, "application/json")
                for name in ("i1", "i2")
            ),
        ),
        (
            Approve(),
            tuple(
                DataPart({"answer": True, "interruptId": name}, "application/json")
                for name in ("i1", "i2")
            ),
        ),
        (
            {"i2": Deny("no")},
            (
                DataPart(
                    {"answer": {"approved": False, "reason": "no"}, "interruptId": "i2"},
                    "application/json",
                ),
            ),
        ),
        (
            {"other": 1},
            tuple(
                DataPart({"answer": {"other": 1}, "interruptId": name}, "application/json")
                for name in ("i1", "i2")
            ),
        ),
    ],
)
def test_an_answer_is_a_text_messages_or_what_is_named_by_ids(run, answer, parts):
    agent = Asks(text("which?"), data({"interruptId": "i1"}), data({"interruptId": "i2"}))

    async def main(server):
        runner = Runner(remote(server), store=MemoryStore())
        await runner.query("go", checkpoint_id="c")
        assert (await runner.resume("c", data=answer)).text == "got it"
        assert agent.told == [parts]
        assert len(set(agent.tasks)) == 1

    with SdkServer(agent) as server:
        run(main(server))


@pytest.mark.parametrize(
    ("answer", "part"),
    [(None, TextPart("continue")), ({"k": 1}, DataPart({"k": 1}, "application/json"))],
)
def test_an_answer_to_a_question_without_ids_goes_as_it_is(run, answer, part):
    agent = Asks()

    async def main(server):
        runner = Runner(remote(server), store=MemoryStore())
        await runner.query("go", checkpoint_id="c")
        assert (await runner.resume("c", data=answer)).text == "got it"
        assert agent.told == [(part,)]

    with SdkServer(agent) as server:
        run(main(server))


def test_an_answer_that_cannot_travel_is_refused_and_nothing_is_sent(run):
    agent = Asks()

    async def main(server):
        runner = Runner(remote(server), store=MemoryStore())
        await runner.query("go", checkpoint_id="c")
        result = await runner.resume("c", data=2**60)
        assert (
            "agent 'Remote': the answer cannot be sent to the remote agent: data is "
            "1152921504606846976: clients round numbers of more than 53 bits" in str(result.error)
        )
        assert agent.told == []

    with SdkServer(agent) as server:
        run(main(server))


def test_it_may_ask_again_and_again(run, streaming):
    agent = Asks(times=3)

    async def main(server):
        runner = Runner(remote(server), store=MemoryStore())
        result = await runner.query("go", checkpoint_id="c")
        for count in range(3):
            assert asked(result).text == "which?"
            result = await runner.resume("c", data=f"answer {count}")
        assert result.text == "got it"
        assert agent.told == [(TextPart(f"answer {count}"),) for count in range(3)]
        assert len(set(agent.tasks)) == 1

    with SdkServer(agent, streaming=streaming) as server:
        run(main(server))


def test_both_sides_may_be_restarted_in_between(run, tmp_path, streaming):
    agent = Asks()
    with SdkServer(agent, streaming=streaming) as server:
        store, port = server.store, server.port

        async def first():
            assert (
                await Runner(remote(server), store=SQLiteStore(tmp_path / "s.db")).query(
                    "go", checkpoint_id="c"
                )
            ).status == "interrupted"

        run(first())
    with SdkServer(agent, streaming=streaming, store=store, port=port) as server:

        async def second():
            result = await Runner(remote(server), store=SQLiteStore(tmp_path / "s.db")).resume(
                "c", data="this"
            )
            assert result.text == "got it"

        run(second())
    assert agent.told == [(TextPart("this"),)]
    assert len(set(agent.tasks)) == 1


def test_a_server_that_has_forgotten_the_task_is_an_error_event(run):
    with SdkServer(Asks()) as server:
        port, memory = server.port, MemoryStore()

        async def first():
            await Runner(remote(server), store=memory).query("go", checkpoint_id="c")

        run(first())
    with SdkServer(Asks(), port=port) as server:

        async def second():
            result = await Runner(remote(server), store=memory).resume("c", data="this")
            assert isinstance(result.error, A2ARequestError)
            assert result.error.reason == "TASK_NOT_FOUND"

        run(second())


def test_an_interrupt_is_answered_once(run):
    agent = Asks()

    async def main(server):
        runner = Runner(remote(server), store=MemoryStore())
        await runner.query("go", checkpoint_id="c")
        assert (await runner.resume("c", data="this")).text == "got it"
        with pytest.raises(ResumeError, match="already answered"):
            await runner.resume("c", data="that")
        # On purpose: but the task has ended, and takes no other answer.
        again = await runner.resume("c@1", data="that")
        assert isinstance(again.error, A2ARequestError)
        assert agent.told == [(TextPart("this"),)]

    with SdkServer(agent) as server:
        run(main(server))


def test_a_server_of_version_0_3_asks_and_is_answered(run):
    agent = Asks(text("which?"), data({"interruptId": "i1"}))

    async def main(server):
        runner = Runner(remote(server), store=MemoryStore())
        assert asked(await runner.query("go", checkpoint_id="c")).text == "which?"
        assert (await runner.resume("c", data={"i1": "a"})).text == "got it"
        assert len(set(agent.tasks)) == 1

    with SdkServer(agent, v03=True, version="0.3.0") as server:
        run(main(server))


def test_a_question_that_no_checkpoint_should_hold_is_refused_and_the_task_canceled(run):
    async def main(server):
        result = await Runner(remote(server), store=MemoryStore()).query("go")
        assert "asks a question of more than 1,000,000 characters" in str(result.error)
        assert len(server.canceled) == 1

    with SdkServer(Asks(text("x" * 1_100_000))) as server:
        run(main(server))


def test_what_was_said_before_the_question_is_shown_once(run, streaming):
    async def play(job):
        updater = await job.begin()
        if job.is_new:
            await updater.add_artifact([text("so far")], artifact_id="a", last_chunk=True)
            return await updater.requires_input(updater.new_agent_message([text("which?")]))
        await updater.add_artifact([text("the rest")], artifact_id="b", last_chunk=True)
        await updater.complete()

    async def main(server):
        runner = Runner(remote(server), store=MemoryStore())
        first = await runner.query("go", checkpoint_id="c")
        second = await runner.resume("c", data="this")
        assert [event.text for event in first.events if event.message] == ["so far"]
        assert [event.text for event in second.events if event.message] == ["the rest"]

    with SdkServer(play, streaming=streaming) as server:
        run(main(server))


def test_two_in_a_parallel_ask_and_each_is_answered(run):
    agent = Asks(times=99)

    async def play(job):
        updater = await job.begin()
        if job.is_new:
            return await updater.requires_input(updater.new_agent_message([text(f"{job.said}?")]))
        await updater.add_artifact([text(f"told {job.said}")], artifact_id="out", last_chunk=True)
        await updater.complete()

    async def main(server):
        both = Parallel(name="P", sub_agents=[remote(server, name="A"), remote(server, name="B")])
        runner = Runner(both, store=MemoryStore())
        waiting = await runner.query("go", checkpoint_id="c")
        ids = {context.address[-1].name: context.id for context in waiting.interrupts}
        waiting = await runner.resume("c", targets={ids["A"]: "one"})
        assert [context.address[-1].name for context in waiting.interrupts] == ["B"]
        result = await runner.resume("c", data="two")
        assert [event.text for event in result.events if event.message] == ["told two"]

    with SdkServer(play) as server:
        run(main(server))
    assert agent.told == []


def test_it_asks_through_a_tool_a_supervisor_and_a_sequential(run):
    async def main(server):
        boss = ScriptedModel(
            [
                ToolCalls(("transfer_to_agent", {"agent_name": "Remote"})),
                Message.assistant("closing"),
            ]
        )
        team = Supervisor(
            supervisor=ChatModelAgent(name="Boss", model=boss), sub_agents=[remote(server)]
        )
        outer = ScriptedModel([ToolCalls(("Tooled", {"request": "x"})), Message.assistant("end")])
        agent = Sequential(
            name="S",
            sub_agents=[
                team,
                ChatModelAgent(
                    name="Outer", model=outer, tools=[remote(server, name="Tooled").as_tool()]
                ),
            ],
        )
        runner = Runner(agent, store=MemoryStore())
        result = await runner.query("go", checkpoint_id="c")
        assert [step.name for step in result.interrupts[0].address] == ["S", "Boss", "Remote"]
        result = await runner.resume("c", data="one")
        assert [step.name for step in result.interrupts[0].address] == [
            "S",
            "Outer",
            "Tooled",
            "Tooled",
        ]
        result = await runner.resume("c", data="two")
        assert result.text == "end"
        boss.assert_done()
        outer.assert_done()

    class Fresh(Asks):
        async def __call__(self, job):
            updater = await job.begin()
            if job.is_new:
                return await updater.requires_input(updater.new_agent_message([text("which?")]))
            await updater.add_artifact([text("got it")], artifact_id="out", last_chunk=True)
            await updater.complete()

    with SdkServer(Fresh()) as server:
        run(main(server))
