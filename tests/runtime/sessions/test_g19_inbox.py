"""Posts to a session: what is stored, when a turn hears it, and how often (G19)."""

import asyncio
import random
from contextlib import asynccontextmanager

import pytest

from offbook.actors import Agent, ChatModelAgent, Parallel, Sequential, ToolContext, tool
from offbook.runtime import (
    ActorSystem,
    AgentEvent,
    InboxFull,
    MemoryStore,
    Message,
    RunEnded,
    Runner,
    RunNotFound,
    RunStatus,
    ToolCall,
    UsageError,
)
from offbook.runtime.sessions.inbox import Inbox
from offbook.runtime.sessions.turn import NothingToHear
from tests.doubles.snapshots import Snapshots


class Model:
    """Calls the tool `work` when it is told to, and otherwise repeats what it hears last."""

    def __init__(self):
        self.heard = []  # the texts of each request

    async def generate(self, request):
        texts = [(message.role, message.text) for message in request.messages]
        self.heard.append(texts)
        if texts[-1] == ("user", "work"):
            return Message.assistant("", tool_calls=(ToolCall("c", "work", "{}"),))
        return Message.assistant(f"heard {texts[-1][1]}")

    @property
    def said_by_user(self):
        """What the user says in the last request."""
        return [text for role, text in self.heard[-1] if role == "user"]


class Desk:
    """A session with a tool that waits for a gate."""

    def __init__(self, store, system, **options):
        self.model, self.gate, self.at_work = Model(), asyncio.Event(), asyncio.Event()

        @tool
        async def work() -> str:
            """Work."""
            self.at_work.set()
            await self.gate.wait()
            return "done"

        self.agent = ChatModelAgent(name="A", model=self.model, tools=[work])
        self.runner = Runner(self.agent, system=system, store=store, **options)
        self.session = self.runner.session("s")

    async def texts(self):
        return [(one.role, one.text) for one in await self.session.history() if one.text]


@asynccontextmanager
async def desk_of(store, **options):
    async with ActorSystem() as system:
        yield Desk(store, system, **options)


@pytest.fixture(params=["interrupt", "step"])
def durability(request):
    return request.param


async def until(condition):
    """Wait until that is so: what a process that attends does is seen by what it leaves."""
    async with asyncio.timeout(20):
        while not await condition():
            await asyncio.sleep(0.005)


async def heard(session, count):
    """Wait until the session has that many messages."""

    async def has():
        return len(await session.history()) >= count

    await until(has)


def test_g19_a_post_is_stored_once_for_an_id_and_refused_with_another_content(run, store):
    async def main():
        async with desk_of(store) as desk:
            first = await desk.session.post("Book a taxi.", id="m-17", sender="anna")
            assert (first.id, first.session_id, first.duplicate) == ("m-17", "s", False)
            again = await desk.session.post("Book a taxi.", id="m-17", sender="anna")
            assert again == first.replace(duplicate=True)
            with pytest.raises(UsageError, match="another content"):
                await desk.session.post("Book a train.", id="m-17", sender="anna")
            (post,) = await desk.session.inbox()
            assert (post.id, post.seq, post.sender, post.when) == (
                "m-17",
                first.seq,
                "anna",
                "safe_point",
            )
            assert post.message.text == "Book a taxi."

    run(main())


def test_g19_many_senders_at_once_have_an_order_each_number_once(run, store):
    async def main():
        async with desk_of(store) as desk:

            async def send(sender):
                return [
                    (await desk.session.post(f"{sender}{number}", sender=sender)).seq
                    for number in range(10)
                ]

            numbers = await asyncio.gather(*map(send, "abcde"))
            assert all(row == sorted(row) for row in numbers)
            assert len({number for row in numbers for number in row}) == 50
            posts = await desk.session.inbox()
            assert [post.seq for post in posts] == sorted(n for row in numbers for n in row)
            for sender in "abcde":
                assert [post.message.text for post in posts if post.sender == sender] == [
                    f"{sender}{number}" for number in range(10)
                ]

    run(main())


def test_g19_a_running_turn_hears_posts_after_its_tool_and_shows_them_as_events(
    run, store, durability
):
    async def main():
        async with desk_of(store, durability=durability) as desk:
            turn = desk.session.query("work")
            await desk.at_work.wait()
            one = await desk.session.post("and a taxi")
            two = await desk.session.post(Message.user("and wine"), sender="bob")
            desk.gate.set()
            result = await turn
            assert desk.model.heard[-1][-3:] == [
                ("tool", "done"),
                ("user", "and a taxi"),
                ("user", "and wine"),
            ]
            posts = [event.post for event in result.events if event.post is not None]
            assert posts == [one, two]
            assert [event.seq for event in result.events] == list(range(1, 6))
            assert result.final_output == "heard and wine"
            assert await desk.texts() == [
                ("user", "work"),
                ("tool", "done"),
                ("user", "and a taxi"),
                ("user", "and wine"),
                ("assistant", "heard and wine"),
            ]
            assert await desk.session.inbox() == []
            await desk.session.query("next")
            assert desk.model.said_by_user == ["work", "and a taxi", "and wine", "next"]

    run(main())


def test_g19_a_turn_starts_with_the_posts_that_wait_before_its_own_message(run, store, durability):
    async def main():
        async with desk_of(store, durability=durability) as desk:
            await desk.session.post("first")
            await desk.session.post("second", when="turn_end")
            result = await desk.session.query("third")
            assert desk.model.said_by_user == ["first", "second", "third"]
            assert [(event.seq, event.text) for event in result.events] == [
                (1, "first"),
                (2, "second"),
                (3, "heard third"),
            ]
            assert await desk.session.inbox() == []

    run(main())


def test_g19_posts_to_an_idle_session_start_a_turn_where_a_process_attends(run, store, durability):
    async def main():
        async with desk_of(store, durability=durability) as desk:
            await desk.session.post("before it attends")
            async with desk.runner.attending():
                await heard(desk.session, 2)
                await desk.session.post("while it attends")
                await heard(desk.session, 4)
            assert await desk.texts() == [
                ("user", "before it attends"),
                ("assistant", "heard before it attends"),
                ("user", "while it attends"),
                ("assistant", "heard while it attends"),
            ]
            assert await desk.session.inbox() == []

    run(main())


def test_g19_an_attending_process_hears_of_the_posts_of_another_one(run, store_of):
    async def main():
        async with desk_of(store_of("sqlite", "same")) as desk:
            other = Runner(desk.agent, store=store_of("sqlite", "same"))
            async with desk.runner.attending(every=600.0):
                await other.session("s").post("hello")
                await heard(desk.session, 2)

    run(main())


def test_g19_a_post_that_comes_with_the_last_answer_starts_the_next_turn(run, store, durability):
    async def main():
        async with desk_of(store, durability=durability) as desk:
            asked, gate = asyncio.Event(), asyncio.Event()
            generate = desk.model.generate

            async def slow(request):
                asked.set()
                await gate.wait()
                return await generate(request)

            desk.model.generate = slow
            async with desk.runner.attending():
                turn = desk.session.query("hello")
                await asked.wait()
                await desk.session.post("too late for this turn")
                gate.set()
                assert (await turn).final_output == "heard hello"
                await heard(desk.session, 4)
            assert (await desk.texts())[2:] == [
                ("user", "too late for this turn"),
                ("assistant", "heard too late for this turn"),
            ]

    run(main())


def test_g19_a_post_for_the_turns_end_holds_back_the_later_ones_of_its_sender_only(run, store):
    async def main():
        async with desk_of(store) as desk:
            turn = desk.session.query("work")
            await desk.at_work.wait()
            await desk.session.post("a1", when="turn_end", sender="a")
            await desk.session.post("a2", sender="a")
            await desk.session.post("b1", sender="b")
            desk.gate.set()
            await turn
            assert desk.model.said_by_user == ["work", "b1"]
            await desk.session.query("next")
            assert desk.model.said_by_user == ["work", "b1", "a1", "a2", "next"]

    run(main())


def test_g19_a_preempting_post_ends_the_turn_at_its_safe_point_and_starts_the_next(
    run, store, durability
):
    async def main():
        async with desk_of(store, durability=durability) as desk:
            turn = desk.session.query("work")
            await desk.at_work.wait()
            await desk.session.post("for the next turn", when="turn_end")
            await desk.session.post("stop, book a train", when="preempt")
            desk.gate.set()
            result = await turn
            assert result.status is RunStatus.CANCELLED
            assert await desk.texts() == [("user", "work"), ("tool", "done")]
            async with desk.runner.attending():
                await heard(desk.session, 6)
            assert (await desk.texts())[2:] == [
                ("user", "for the next turn"),
                ("user", "stop, book a train"),
                ("assistant", "heard stop, book a train"),
            ]

    run(main())


def test_g19_a_withdrawn_post_is_never_heard_and_a_heard_one_is_not_withdrawn(run, store):
    async def main():
        async with desk_of(store) as desk:
            await desk.session.post("one", id="1")
            await desk.session.post("two", id="2")
            assert await desk.session.withdraw("1")
            assert not await desk.session.withdraw("1")
            assert not await desk.session.withdraw("never posted")
            await desk.session.query("three")
            assert desk.model.said_by_user == ["two", "three"]
            assert not await desk.session.withdraw("2")

    run(main())


def test_g19_a_post_that_a_turn_is_about_to_hear_is_not_withdrawn(run, store):
    async def main():
        async with desk_of(store, durability="step") as desk:
            await desk.session.post("one", id="1")
            asked, gate = asyncio.Event(), asyncio.Event()

            def hold(posts):
                asked.set()
                return posts

            session = desk.runner.session("s", inbox=hold)
            turn = session.query("work")
            await desk.at_work.wait()
            assert asked.is_set()
            assert not await session.withdraw("1")
            gate.set()
            desk.gate.set()
            await turn
            assert desk.model.said_by_user == ["one", "work"]

    run(main())


def test_g19_a_function_chooses_what_is_heard_now_and_the_rest_waits(run, store):
    async def main():
        async with desk_of(store) as desk:
            session = desk.runner.session(
                "s", inbox=lambda posts: [one for one in posts if one.sender == "boss"]
            )
            await session.post("chat")
            await session.post("order", sender="boss")
            await session.query("hello")
            assert desk.model.said_by_user == ["order", "hello"]
            assert [post.message.text for post in await session.inbox()] == ["chat"]
            wrong = desk.runner.session("s", inbox=lambda posts: "chat")
            with pytest.raises(UsageError, match="must return some of the posts"):
                await wrong.query("hello")
            assert [post.message.text for post in await session.inbox()] == ["chat"]

    run(main())


def test_g19_a_preempting_post_that_the_function_leaves_ends_no_turn(run, store):
    async def main():
        async with desk_of(store) as desk:
            session = desk.runner.session("s", inbox=lambda posts: [])
            await session.post("stop", when="preempt")
            desk.gate.set()
            result = await session.query("work")
            assert (result.status, result.final_output) == (RunStatus.COMPLETED, "heard done")
            assert [post.message.text for post in await session.inbox()] == ["stop"]

    run(main())


def test_g19_posts_that_come_one_after_the_other_settle_into_one_turn(run, store_of):
    async def main():
        async with desk_of(store_of("sqlite")) as desk:

            def open_session(session_id):
                return desk.runner.session(session_id, settle=0.3)

            async with desk.runner.attending(session=open_session):
                for text in ("I need", "a taxi", "to the station"):
                    await desk.session.post(text)
                    await asyncio.sleep(0.02)  # a person who writes three messages in a row
                await heard(desk.session, 4)
            assert desk.model.said_by_user == ["I need", "a taxi", "to the station"]
            assert len(desk.model.heard) == 1

    run(main())


@pytest.mark.parametrize("while_interrupted", ["wait", "turn"])
def test_g19_posts_to_a_session_that_waits_for_an_answer(run, store, while_interrupted):
    @tool
    def refund(context: ToolContext) -> str:
        """Refund."""
        return f"answered {context.interrupt('may I?')}"

    class Asking:
        async def generate(self, request):
            last = request.messages[-1]
            if last.text == "refund":
                return Message.assistant("", tool_calls=(ToolCall("c", "refund", "{}"),))
            users = [one.text for one in request.messages if one.role == "user"]
            return Message.assistant(f"heard {users[-1]}")

    async def main():
        async with ActorSystem() as system:
            agent = ChatModelAgent(name="A", model=Asking(), tools=[refund])
            runner = Runner(agent, system=system, store=store)

            def open_session(session_id):
                return runner.session(session_id, while_interrupted=while_interrupted)

            session = open_session("s")
            asking = session.query("refund")
            assert (await asking).status is RunStatus.INTERRUPTED
            before = len(await session.history())
            async with runner.attending(session=open_session, every=0.02):
                await session.post("are you there?")
                if while_interrupted == "turn":
                    await heard(session, before + 2)
                else:
                    with pytest.raises(NothingToHear):
                        await session.hear()
                assert len(await session.inbox()) == (while_interrupted == "wait")
                resumed = await runner.resume(asking.checkpoint_id, data="yes")
            assert resumed.status is RunStatus.COMPLETED
            assert resumed.final_output == (
                "heard are you there?" if while_interrupted == "wait" else "heard refund"
            )
            assert await session.inbox() == []

    run(main())


def test_g19_an_inbox_is_bounded_and_a_post_too(run, store_of):
    async def main():
        async with desk_of(store_of("sqlite")) as desk:
            session = desk.runner.session("s", max_pending=2)
            await session.post("1")
            await session.post("2", id="2")
            with pytest.raises(InboxFull, match="max_pending"):
                await session.post("3")
            assert (await session.post("2", id="2")).duplicate
            await session.query("go")
            await session.post("3")
            with pytest.raises(UsageError, match="1,048,576 bytes"):
                await session.post("x" * (1 << 20))

    run(main())


def test_g19_clear_discards_what_waits(run, store):
    async def main():
        async with desk_of(store) as desk:
            await desk.session.post("one", id="1")
            await desk.session.clear()
            assert await desk.session.inbox() == []
            assert not (await desk.session.post("one", id="1")).duplicate
            assert await desk.runner.forget_session("s") == 0
            assert await desk.session.inbox() == []

    run(main())


def test_g19_a_workflow_hears_posts_at_its_agents_next_request(run, store):
    asked, gate = asyncio.Event(), asyncio.Event()

    class Slow(Agent):
        async def run(self, input, context):
            asked.set()
            await gate.wait()
            yield AgentEvent.say("slow is done")

    async def main():
        model = Model()
        agent = Sequential(
            name="All", sub_agents=[Slow(name="S"), ChatModelAgent(name="B", model=model)]
        )
        async with ActorSystem() as system:
            session = Runner(agent, system=system, store=store).session("s")
            turn = session.query("hello")
            await asked.wait()
            await session.post("quickly")
            gate.set()
            await turn
            assert model.heard[-1][-1] == ("user", "quickly")
            assert model.said_by_user[0] == "hello"
            assert "quickly" not in model.said_by_user[1]

    run(main())


def test_g19_branches_of_a_parallel_hear_a_post_once(run, store):
    async def main():
        model, gate = Model(), asyncio.Event()
        entered = []

        @tool
        async def work() -> str:
            """Work."""
            entered.append(1)
            await gate.wait()
            return "done"

        agents = [ChatModelAgent(name=name, model=model, tools=[work]) for name in "XYZ"]
        async with ActorSystem() as system:
            runner = Runner(Parallel(name="All", sub_agents=agents), system=system, store=store)
            session = runner.session("s")
            turn = session.query("work")

            async def all_at_work():
                return len(entered) == 3

            await until(all_at_work)
            await session.post("once")
            gate.set()
            result = await turn
            assert [event.text for event in result.events if event.post] == ["once"]
            assert [one.text for one in await session.history()].count("once") == 1

    run(main())


def test_g19_a_post_heard_in_a_turn_that_fails_is_not_heard_again(run, store, durability):
    async def main():
        async with desk_of(store, durability=durability) as desk:

            async def fail(request):
                raise ValueError("no model today")

            desk.model.generate, generate = fail, desk.model.generate
            await desk.session.post("hello")
            async with desk.runner.attending(every=0.02):
                await heard(desk.session, 1)
                await asyncio.sleep(0.1)  # time in which it would be tried again
            assert await desk.texts() == [("user", "hello")]
            assert await desk.session.inbox() == []
            desk.model.generate = generate
            await desk.session.query("again")
            assert desk.model.said_by_user == ["hello", "again"]

    run(main())


def test_bad_input_of_posts_is_told(run, store_of):
    async def main():
        async with desk_of(store_of("sqlite")) as desk:
            post = desk.session.post
            for wrong, says in (
                (lambda: post("x", when="soon"), "'safe_point', 'turn_end' or 'preempt'"),
                (lambda: post(Message.assistant("x")), "user message"),
                (lambda: post(7), "a string or a user message"),
                (lambda: post("x", id=""), "id must be a string of 1 to 200 bytes"),
                (lambda: post("x", sender="s" * 300), "sender must be a string"),
            ):
                with pytest.raises(UsageError, match=says):
                    await wrong()
            for wrong, says in (
                ({"settle": -1}, "settle must be"),
                ({"inbox": 3}, "inbox must be a function"),
                ({"while_interrupted": "never"}, "'wait' or 'turn'"),
                ({"max_pending": 0}, "max_pending must be"),
            ):
                with pytest.raises(UsageError, match=says):
                    desk.runner.session("s", **wrong)
            with pytest.raises(UsageError, match="concurrency must be"):
                desk.runner.attending(concurrency=0)
            with pytest.raises(UsageError, match="every must be"):
                desk.runner.attending(every=0)
            with pytest.raises(UsageError, match="attending"):
                Runner(desk.agent).attending()
            assert await Inbox(desk.runner._access, "A", "s").pending() == []

    run(main())


def test_g19_the_run_of_an_agent_called_as_a_tool_leaves_posts_to_its_caller(run):
    async def main():
        inner, outer = Model(), Model()
        at_work, gate = asyncio.Event(), asyncio.Event()

        @tool
        async def work() -> str:
            """Work."""
            at_work.set()
            await gate.wait()
            return "done"

        helper = ChatModelAgent(name="Helper", model=inner, tools=[work], description="helps")

        class Calls:
            async def generate(self, request):
                if request.messages[-1].text == "hello":
                    call = ToolCall("c", "Helper", '{"request": "work"}')
                    return Message.assistant("", tool_calls=(call,))
                return await outer.generate(request)

        agent = ChatModelAgent(name="Boss", model=Calls(), tools=[helper.as_tool()])
        async with ActorSystem() as system:
            session = Runner(agent, system=system, store=MemoryStore()).session("s")
            turn = session.query("hello")
            await at_work.wait()
            await session.post("to the boss")
            gate.set()
            await turn
            assert inner.said_by_user == ["work"]
            assert outer.heard[-1][-1] == ("user", "to the boss")

    run(main())


def test_g19_a_post_to_a_run_is_heard_by_its_session_and_refused_after_its_end(run, store):
    async def main():
        async with desk_of(store, durability="step", keep="all") as desk:
            turn = desk.session.query("work")
            await desk.at_work.wait()
            posted = await desk.runner.post(turn.id, "and a taxi", id="t")
            assert posted.session_id == "s"
            desk.gate.set()
            assert (await turn).final_output == "heard and a taxi"
            with pytest.raises(RunEnded, match="Post to its session"):
                await desk.runner.post(turn.id, "too late")
            with pytest.raises(RunNotFound, match="no run with this id"):
                await desk.runner.post("never", "hello")
            alone = desk.runner.query("work")
            desk.gate.clear()
            desk.at_work.clear()
            await desk.at_work.wait()
            with pytest.raises(UsageError, match="belongs to no session"):
                await desk.runner.post(alone.id, "hello")
            desk.gate.set()
            await alone

    run(main())


def test_g19_branches_that_look_at_the_same_time_hear_a_sender_in_order(run):
    class Slow(MemoryStore):
        async def commit(self, *args, **options):
            await asyncio.sleep(random.random() * 0.003)
            return await super().commit(*args, **options)

    async def main():
        def branch(name):
            calls = iter(range(8))

            async def generate(_request):
                await asyncio.sleep(random.random() * 0.003)
                if (number := next(calls)) == 7:
                    return Message.assistant("end")
                call = ToolCall(f"{name}{number}", "work", "{}")
                return Message.assistant("", tool_calls=(call,))

            @tool
            async def work() -> str:
                """Work."""
                for _ in range(2):
                    await session.post(f"{next(numbers)}", id=f"{name}{len(sent)}")
                    sent.append(name)
                return "done"

            model = Model()
            model.generate = generate
            return ChatModelAgent(name=name, model=model, tools=[work])

        numbers, sent = iter(range(1000)), []
        async with ActorSystem() as system:
            crew = Parallel(name="A", sub_agents=[branch(name) for name in "pqrst"])
            runner = Runner(crew, system=system, store=Slow(), durability="step")
            session = runner.session("s")
            result = await session.query("go")
            heard = [event.post.seq for event in result.events if event.post is not None]
            assert len(heard) > 20
            assert heard == sorted(heard)

    run(main())


def test_g19_a_post_that_an_interrupted_run_has_heard_is_not_heard_again_after_a_crash(
    run, durability
):
    """From what is in the store after each step, another process goes on."""

    def runner_on(store, system, *, posts):
        async def generate(request):
            said = sum(message.role == "assistant" for message in request.messages)
            if said == 2:
                return Message.assistant("end")
            call = ToolCall(f"c{said}", ("work", "pay")[said], "{}")
            return Message.assistant("", tool_calls=(call,))

        @tool
        async def work() -> str:
            """Work."""
            if posts:
                await runner.session("s").post("by train")
            return "done"

        @tool(needs_approval=True)
        def pay() -> str:
            """Pay."""
            return "paid"

        model = Model()
        model.generate = generate
        agent = ChatModelAgent(name="A", model=model, tools=[work, pay])
        runner = Runner(agent, system=system, store=store, durability=durability)
        return runner

    async def main():
        store, rows = Snapshots(), []
        take = store.after

        async def after(call):
            before = len(store.taken)
            await take(call)
            if len(store.taken) > before:  # with the rows that a snapshot leaves out
                rows.append([row for row, *_ in store._runs._entries.values() if not row.claim])

        store.after = after
        async with ActorSystem() as system:
            result = await runner_on(store, system, posts=True).session("s").query("go")
            assert result.status is RunStatus.INTERRUPTED
        for (_, content), others in zip(store.taken, rows, strict=True):
            left = Snapshots(content)
            await left.commit(None, others)
            async with ActorSystem() as system:
                runner = runner_on(left, system, posts=False)
                waiting = await runner.pending()
                if not waiting:
                    continue
                await runner.approve(waiting[0].waiting[0])
                session = runner.session("s")
                await session.query("next")
                said = [message.text for message in await session.history()]
                assert said.count("by train") == 1

    run(main())


@pytest.mark.parametrize("fails", ["opens", "chooses"])
def test_g19_a_session_that_cannot_be_opened_holds_back_no_other(run, fails):
    async def main():
        async with desk_of(MemoryStore()) as desk:

            def refuse(_posts):
                raise ValueError("no")

            def session(session_id):
                if session_id == "a" and fails == "opens":
                    raise ValueError("no")
                return desk.runner.session(session_id, inbox=refuse if session_id == "a" else None)

            await desk.runner.session("a").post("one")
            await desk.session.post("two")
            async with desk.runner.attending(every=0.02, session=session):
                await heard(desk.session, 2)
            assert len(await desk.runner.session("a").inbox()) == 1

    run(main())


def test_g19_two_that_attend_do_not_wake_each_other_for_posts_that_wait(run):
    async def main():
        looks = 0

        def none(_posts):
            nonlocal looks
            looks += 1
            return []

        async with desk_of(MemoryStore()) as desk:

            def session(session_id):
                return desk.runner.session(session_id, inbox=none)

            attending = [desk.runner.attending(every=600.0, session=session) for _ in range(2)]
            async with attending[0], attending[1]:
                await desk.session.post("one")
                await asyncio.sleep(0.3)
            assert 1 <= looks <= 4

    run(main())


def test_g19_a_lost_run_of_another_agent_holds_back_no_posts(run):
    async def main():
        store = MemoryStore()
        async with ActorSystem() as system:
            desk = Desk(store, system, durability="step")
            other = ChatModelAgent(name="B", model=Model(), tools=desk.agent.tools)
            Runner(other, system=system, store=store, durability="step").session("s").query("work")
            await desk.at_work.wait()
        async with desk_of(store, durability="step") as desk:
            assert [one.agent for one in await desk.runner.runs("drained")] == ["B"]
            async with desk.runner.attending(every=0.02):
                await desk.session.post("hello")
                await heard(desk.session, 2)

    run(main())
