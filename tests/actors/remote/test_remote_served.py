"""An agent of ours that is served by `a2a_app`, and asked by a `RemoteAgent`: both ends are this
package's, and real HTTP is between them.
"""

import asyncio

import pytest

from offbook.actors import ChatModelAgent, RemoteAgent, Supervisor, tool
from offbook.runtime import (
    AgentEvent,
    CustomAction,
    MemoryStore,
    Message,
    Runner,
    RunStatus,
    ScriptedModel,
    SQLiteStore,
    ToolCalls,
)
from offbook.runtime.a2a import (
    ArtifactUpdate,
    AuthRequired,
    BearerTokens,
    DataPart,
    FilePart,
    Reject,
    RemoteInterrupt,
    RemoteTaskError,
    Reply,
    Status,
    a2a_app,
)
from tests.doubles.a2a import scripted, serving


@pytest.fixture(params=["JSONRPC", "HTTP+JSON"])
def transport(request):
    return request.param


def remote(url, **options):
    return RemoteAgent(url, **{"name": "Remote", **options})


def messages(result):
    return [event.message for event in result.events if event.message is not None]


def test_what_an_agent_says_arrives_in_pieces_and_whole(run, transport):
    async def main():
        served = ChatModelAgent(
            name="Served",
            description="says",
            model=ScriptedModel([Message.assistant("one two three four")]),
        )
        async with serving(a2a_app(served)) as url:
            agent = remote(url, transport=transport)
            events = [event async for event in Runner(agent).query("go", streaming=True)]
            assert (
                "".join(event.delta.content for event in events if event.delta)
                == "one two three four"
            )
            assert [event.text for event in events if event.message] == ["one two three four"]
            await agent.aclose()

    run(main())


def test_all_that_an_agent_may_say_to_agent2agent_arrives(run, transport):
    async def play(given, context):
        match given.messages[-1].text:
            case "reply":
                yield Reply("no task")
            case "reject":
                yield Reject("not mine")
            case "make":
                yield Status("at work")
                yield ArtifactUpdate("report", ["one "], last=False)
                yield ArtifactUpdate("report", ["two"], append=True)
                yield ArtifactUpdate("data", [DataPart({"n": 1, "x": 0.5})])
                yield ArtifactUpdate(
                    "file",
                    [
                        FilePart(data=b"\0\1", media_type="application/pdf", name="f.pdf"),
                        FilePart("https://x.test/y"),
                    ],
                )

    async def main():
        async with serving(a2a_app(scripted(play))) as url:
            agent = remote(url, transport=transport)
            runner = Runner(agent)
            assert (await runner.query("reply")).text == "no task"
            rejected = (await runner.query("reject")).error
            assert isinstance(rejected, RemoteTaskError)
            assert (rejected.state, "not mine" in str(rejected)) == ("rejected", True)
            result = await runner.query("make")
            made = messages(result)
            assert made[0].text == "one two"
            assert [event.custom_output for event in result.events if event.custom_output] == [
                {"n": 1, "x": 0.5}
            ]
            assert [(part.data, part.url, part.name) for part in made[2].content] == [
                (b"\0\1", None, "f.pdf"),
                (None, "https://x.test/y", None),
            ]
            assert CustomAction(Status("at work")) in [event.action for event in result.events]
            await agent.aclose()

    run(main())


def test_an_interrupt_is_answered_by_its_id_after_a_restart_of_both_sides(run, tmp_path, transport):
    told = []

    async def play(given, context):
        if context.resume is None:
            yield context.interrupt({"question": "which?", "options": ["a", "b"]})
            return
        told.append(context.resume.data)
        yield f"took {context.resume.data}"

    async def first():
        async with serving(
            a2a_app(scripted(play), store=SQLiteStore(tmp_path / "served.db"))
        ) as url:
            agent = remote(url, transport=transport)
            result = await Runner(agent, store=SQLiteStore(tmp_path / "own.db")).query(
                "go", checkpoint_id="c"
            )
            info = result.interrupts[0].info
            assert isinstance(info, RemoteInterrupt)
            assert (info.text, info.questions[0].options) == ("which?", ["a", "b"])
            await agent.aclose()
            return int(url.rsplit(":", 1)[1]), info.questions[0].id

    async def second(answer):
        async with serving(
            a2a_app(scripted(play), store=SQLiteStore(tmp_path / "served.db"))
        ) as url:
            agent = remote(url, transport=transport)
            result = await Runner(agent, store=SQLiteStore(tmp_path / "own.db")).resume(
                "c", data=answer
            )
            assert result.text == "took a"
            await agent.aclose()

    _, question = run(first())
    run(second({question: "a"}))
    assert told == ["a"]


@pytest.mark.parametrize(
    ("answer", "said"), [("approve", "paid"), (True, "paid"), ("no", "denied")]
)
def test_a_tool_that_needs_approval_over_there_is_approved_from_here(run, answer, said):
    paid = []

    @tool(needs_approval=True)
    def pay(euros: int) -> str:
        """Pay."""
        paid.append(euros)
        return "paid"

    def last(request):
        return Message.assistant("paid" if request.messages[-1].text == "paid" else "denied")

    async def main():
        served = ChatModelAgent(
            name="Cashier",
            description="pays",
            model=ScriptedModel([ToolCalls(pay={"euros": 7}), last]),
            tools=[pay],
        )
        async with serving(a2a_app(served, store=MemoryStore())) as url:
            agent = remote(url)
            runner = Runner(agent, store=MemoryStore())
            waiting = await runner.query("go", checkpoint_id="c")
            assert "pay" in waiting.interrupts[0].info.text
            assert (await runner.resume("c", data=answer)).text == said
            assert paid == ([7] if said == "paid" else [])
            await agent.aclose()

    run(main())


def test_credentials_that_are_asked_for_are_asked_for_here(run):
    async def play(given, context):
        if context.resume is None:
            yield context.interrupt(AuthRequired({"url": "https://login.test"}))
            return
        yield f"in as {context.resume.data}"

    async def main():
        async with serving(a2a_app(scripted(play), store=MemoryStore())) as url:
            agent = remote(url)
            runner = Runner(agent, store=MemoryStore())
            info = (await runner.query("go", checkpoint_id="c")).interrupts[0].info
            assert isinstance(info, AuthRequired)
            assert info.info.questions[0].info == {"url": "https://login.test"}
            assert (await runner.resume("c", data="ada")).text == "in as ada"
            await agent.aclose()

    run(main())


def test_cancel_goes_through_to_the_agent_that_is_at_work(run):
    async def main():
        begun, ended = asyncio.Event(), asyncio.Event()

        async def play(given, context):
            yield Status("at work")
            begun.set()
            try:
                await asyncio.Event().wait()
            finally:
                ended.set()

        async with serving(a2a_app(scripted(play))) as url:
            agent = remote(url)
            one = Runner(agent).query("go")
            await begun.wait()
            one.cancel()
            assert (await one).status is RunStatus.CANCELLED
            await asyncio.wait_for(ended.wait(), 5)
            await agent.aclose()

    run(main())


def test_one_service_asks_another_and_its_question_goes_all_the_way(run):
    """A supervisor here asks an agent over there, which asks a third one, which asks a human."""

    async def asks(given, context):
        if context.resume is None:
            yield context.interrupt("which one?")
            return
        yield f"the third heard {context.resume.data}"

    async def main():
        async with serving(a2a_app(scripted(asks, name="Third"), store=MemoryStore())) as third:
            middle = remote(third, name="Middle", description="asks the third")
            async with serving(a2a_app(middle, store=MemoryStore())) as second:
                boss = ScriptedModel(
                    [
                        ToolCalls(("transfer_to_agent", {"agent_name": "Remote"})),
                        Message.assistant("closing"),
                    ]
                )
                agent = remote(second)
                runner = Runner(
                    Supervisor(
                        supervisor=ChatModelAgent(name="Boss", model=boss), sub_agents=[agent]
                    ),
                    store=MemoryStore(),
                )
                waiting = await runner.query("go", checkpoint_id="c")
                assert waiting.interrupts[0].info.text == "which one?"
                result = await runner.resume("c", data="blue")
                assert "the third heard blue" in [message.text for message in messages(result)]
                assert result.text == "closing"
                await agent.aclose()
                await middle.aclose()

    run(main())


def test_a_session_over_here_is_one_context_over_there(run):
    contexts = []

    async def play(given, context):
        contexts.append((context.session_id, len(given.messages)))
        yield f"{len(given.messages)}"

    async def main():
        async with serving(a2a_app(scripted(play), auth=BearerTokens({"secret": "ada"}))) as url:
            agent = remote(url, auth="secret")
            session = Runner(agent, store=MemoryStore()).session("s")
            await session.query("one")
            await session.query("two")
            assert contexts[0][0] == contexts[1][0] is not None
            assert [count for _, count in contexts] == [1, 3]
            await agent.aclose()

    run(main())


def test_events_of_an_agent_over_there_are_of_the_remote_agent_here(run):
    async def play(given, context):
        yield AgentEvent.say("hello")

    async def main():
        async with serving(a2a_app(scripted(play, name="Inner"))) as url:
            agent = remote(url)
            result = await Runner(agent).query("go")
            assert [
                (event.agent_name, event.run_path) for event in result.events if event.message
            ] == [("Remote", ("Remote",))]
            await agent.aclose()

    run(main())
