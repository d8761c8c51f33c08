"""`run.cancel(mode)` at one agent: in a call of its model, in its tools, while it streams, in an
agent of the user's; and how it goes on.
"""

import asyncio
import threading

import pytest

from offbook.actors import ChatModelAgent, ToolContext, tool
from offbook.runtime import Message, MessageDelta, ToolCalls, UsageError
from tests.doubles.cancelling import (
    MODES,
    SAFE,
    CancelledRun,
    Door,
    Player,
    after,
    chat,
    quick,
    waiting,
)


def asked(agent):
    """How often its model was asked."""
    return len(agent.model.requests)


# --- in a call of the model ---


def test_immediate_cuts_the_call_of_the_model_short_and_it_is_made_again(run):
    async def main():
        door = Door()
        agent = chat("A", after(door, "never"), "hello")
        async with CancelledRun(agent) as stage:
            await stage.play()
            await door.somebody()
            assert await stage.run.cancel("immediate") is True
            assert await stage.end() == ["A RunCancelled"]
            assert door.cut == 1
            assert await stage.go_on() == ["A hello"]
            assert agent.model.requests[0] == agent.model.requests[1]

    run(main())


@pytest.mark.parametrize("mode", SAFE)
def test_a_run_whose_last_reply_is_under_way_completes(run, mode):
    async def main():
        door = Door()
        agent = chat("A", after(door, "hello"))
        async with CancelledRun(agent) as stage:
            await stage.play()
            await door.somebody()
            handle = await stage.cancel(mode)
            door.open()
            assert await handle is False
            assert await stage.end() == ["A hello"]
            assert stage.run.status == "completed"

    run(main())


def test_after_model_ends_before_the_tools_that_the_model_wants(run):
    async def main():
        door = Door()
        slow = Door()
        slow.open()
        agent = chat("A", after(door, ToolCalls(slow={})), "done", tools=[waiting(slow)])
        async with CancelledRun(agent) as stage:
            await stage.play()
            await door.somebody()
            handle = await stage.cancel("after_model")
            door.open()
            assert await handle is True
            assert await stage.end() == ["A calls slow", "A RunCancelled"]
            assert slow.reached == 0
            assert await stage.go_on() == ["A slow: slow done", "A done"]
            assert (asked(agent), slow.reached) == (2, 1)

    run(main())


def test_after_tools_ends_behind_the_tools_that_the_model_wants(run):
    async def main():
        door = Door()
        slow = Door()
        slow.open()
        agent = chat("A", after(door, ToolCalls(slow={})), "done", tools=[waiting(slow)])
        async with CancelledRun(agent) as stage:
            await stage.play()
            await door.somebody()
            handle = await stage.cancel("after_tools")
            door.open()
            assert await handle is True
            assert await stage.end() == ["A calls slow", "A slow: slow done", "A RunCancelled"]
            assert await stage.go_on() == ["A done"]
            assert (asked(agent), slow.reached) == (2, 1)

    run(main())


# --- in tools ---


def test_immediate_cuts_a_tool_short_and_its_call_is_made_again_under_the_same_key(run):
    async def main():
        door = Door()
        agent = chat(
            "A", ToolCalls(("quick", {}), ("slow", {})), "done", tools=[quick, waiting(door)]
        )
        async with CancelledRun(agent) as stage:
            await stage.play()
            await door.somebody()
            assert await stage.run.cancel() is True
            assert await stage.end() == [
                "A calls quick calls slow",
                "A quick: quick done",
                "A RunCancelled",
            ]
            assert door.cut == 1
            door.open()
            assert await stage.go_on() == ["A slow: slow done", "A done"], (
                "the quick one had completed"
            )
            assert door.reached == 2
            assert len(set(door.keys)) == 1
            assert asked(agent) == 2

    run(main())


@pytest.mark.parametrize("mode", SAFE)
def test_tools_that_are_under_way_come_to_their_end(run, mode):
    async def main():
        door = Door()
        agent = chat(
            "A", ToolCalls(("quick", {}), ("slow", {})), "done", tools=[quick, waiting(door)]
        )
        async with CancelledRun(agent) as stage:
            await stage.play()
            await door.somebody()
            handle = await stage.cancel(mode)
            door.open()
            assert await handle is True
            assert await stage.end() == [
                "A calls quick calls slow",
                "A quick: quick done",
                "A slow: slow done",
                "A RunCancelled",
            ]
            assert await stage.go_on() == ["A done"]
            assert (asked(agent), door.reached, door.cut) == (2, 1, 0)

    run(main())


@pytest.mark.parametrize("mode", SAFE)
def test_of_tools_that_are_called_one_by_one_the_next_one_is_not_begun(run, mode):
    async def main():
        door = Door()
        agent = chat(
            "A",
            ToolCalls(("slow", {}), ("quick", {})),
            "done",
            tools=[quick, waiting(door)],
            parallel_tool_calls=False,
        )
        async with CancelledRun(agent) as stage:
            await stage.play()
            await door.somebody()
            handle = await stage.cancel(mode)
            door.open()
            assert await handle is True
            assert await stage.end() == [
                "A calls slow calls quick",
                "A slow: slow done",
                "A RunCancelled",
            ]
            assert await stage.go_on() == ["A quick: quick done", "A done"]
            assert door.reached == 1

    run(main())


@pytest.mark.parametrize("mode", SAFE)
def test_a_run_whose_last_tool_is_under_way_completes(run, mode):
    async def main():
        door = Door()
        agent = chat("A", ToolCalls(slow={}), tools=[waiting(door, return_directly=True)])
        async with CancelledRun(agent) as stage:
            await stage.play()
            await door.somebody()
            handle = await stage.cancel(mode)
            door.open()
            assert await handle is False
            assert await stage.end() == ["A calls slow", "A slow: slow done"]

    run(main())


def test_a_result_that_is_to_come_last_is_kept_while_the_others_are_cut_short(run):
    async def main():
        door, last = Door(), Door()
        last.open()
        agent = chat(
            "A",
            ToolCalls(("slow", {}), ("last", {})),
            tools=[waiting(door), waiting(last, "last", return_directly=True)],
        )
        async with CancelledRun(agent) as stage:
            await stage.play()
            await door.somebody()
            await last.somebody()
            assert await stage.run.cancel() is True
            assert await stage.end() == ["A calls slow calls last", "A RunCancelled"]
            door.open()
            assert await stage.go_on() == ["A slow: slow done", "A last: last done"]
            assert (door.reached, last.reached) == (2, 1)

    run(main())


def test_a_tool_in_a_thread_is_not_waited_for_and_shows_nothing_any_more(run):
    async def main():
        reached, let_go, keys = threading.Event(), threading.Event(), []

        @tool
        def blocking(context: ToolContext) -> str:
            keys.append(context.idempotency_key)
            reached.set()
            assert let_go.wait(10)
            return "unblocked"

        agent = chat("A", ToolCalls(blocking={}), "done", tools=[blocking])
        async with CancelledRun(agent) as stage:
            await stage.play()
            await asyncio.to_thread(reached.wait, 5)
            assert await stage.run.cancel() is True
            assert await stage.end() == ["A calls blocking", "A RunCancelled"]
            let_go.set()
            assert await stage.go_on() == ["A blocking: unblocked", "A done"]
            assert len(keys) == 2
            assert len(set(keys)) == 1

    run(main())


@pytest.mark.parametrize("mode", SAFE)
def test_a_tool_in_a_thread_comes_to_its_end(run, mode):
    async def main():
        reached, let_go = threading.Event(), threading.Event()

        @tool
        def blocking() -> str:
            reached.set()
            assert let_go.wait(10)
            return "unblocked"

        async with CancelledRun(
            chat("A", ToolCalls(blocking={}), "done", tools=[blocking])
        ) as stage:
            await stage.play()
            await asyncio.to_thread(reached.wait, 5)
            handle = await stage.cancel(mode)
            let_go.set()
            assert await handle is True
            assert await stage.end() == [
                "A calls blocking",
                "A blocking: unblocked",
                "A RunCancelled",
            ]
            assert await stage.go_on() == ["A done"]

    run(main())


# --- while it streams ---


class Streams:
    """A model that says two words, and waits at a door between them."""

    def __init__(self, door, last):
        self.door = door
        self.last = last

    async def generate(self, request):
        raise AssertionError("it is to stream")

    async def stream(self, request):
        yield MessageDelta("one")
        await self.door.wait()
        yield MessageDelta("two")
        yield (
            Message.assistant("one two", ())
            if self.last
            else Message.assistant("", ToolCalls(quick={}).message(iter((1,))).tool_calls)
        )


def streaming(door, *, last):
    return ChatModelAgent(name="A", model=Streams(door, last), tools=[quick], max_iterations=1)


def test_immediate_cuts_a_stream_short_and_it_is_streamed_from_the_beginning(run):
    async def main():
        door = Door()
        async with CancelledRun(streaming(door, last=True), streaming=True) as stage:
            await stage.play()
            await door.somebody()
            assert await stage.run.cancel() is True
            assert await stage.end() == ["A ...one", "A RunCancelled"]
            assert door.cut == 1
            door.open()
            assert await stage.go_on() == ["A ...one", "A ...two", "A one two"]

    run(main())


@pytest.mark.parametrize(
    ("mode", "last", "left"),
    [
        ("after_model", True, []),
        ("after_model", False, ["A RunCancelled"]),
        ("after_tools", True, []),
    ],
)
def test_a_reply_that_is_being_streamed_is_streamed_to_its_end(run, mode, last, left):
    async def main():
        door = Door()
        async with CancelledRun(streaming(door, last=last), streaming=True) as stage:
            await stage.play()
            await door.somebody()
            handle = await stage.cancel(mode)
            door.open()
            assert await handle is bool(left)
            assert await stage.end() == [
                "A ...one",
                "A ...two",
                "A one two" if last else "A calls quick",
                *left,
            ]

    run(main())


# --- an agent of the user's ---


def test_immediate_cuts_a_custom_agent_short_and_it_goes_on_from_its_state(run):
    async def main():
        door = Door()
        async with CancelledRun(Player("A", "one", door, "two")) as stage:
            await stage.play()
            await door.somebody()
            assert await stage.run.cancel() is True
            assert await stage.end() == ["A one", "A RunCancelled"]
            assert door.cut == 1
            door.open()
            assert await stage.go_on() == ["A two"]

    run(main())


@pytest.mark.parametrize("mode", SAFE)
def test_a_custom_agent_has_no_safe_point_but_its_end(run, mode):
    async def main():
        door = Door()
        async with CancelledRun(Player("A", "one", door, "two")) as stage:
            await stage.play()
            await door.somebody()
            handle = await stage.cancel(mode)
            door.open()
            assert await handle is False
            assert await stage.end() == ["A one", "A two"]

    run(main())


# --- without a store ---


@pytest.mark.parametrize("mode", MODES)
def test_without_a_store_it_ends_the_same_way_and_cannot_be_resumed(run, mode):
    async def main():
        door = Door()
        async with CancelledRun(
            chat("A", ToolCalls(slow={}), "done", tools=[waiting(door)]), store=False
        ) as stage:
            await stage.play()
            await door.somebody()
            handle = await stage.cancel(mode)
            door.open()
            assert await handle is True
            assert stage.run.checkpoint_id is None
            assert await stage.end() == [
                "A calls slow",
                *(["A slow: slow done"] if mode != "immediate" else []),
                "A RunCancelled",
            ]
            assert len((await stage.run).error.contexts) == 1
            with pytest.raises(UsageError, match="no store"):
                await stage.go_on(key=stage.run.id)

    run(main())
