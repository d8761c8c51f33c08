"""G11: one definition may be used by any number of concurrent runs; they never see each other's
state.
"""

import asyncio
import threading

from offbook.actors import Agent, ChatModelAgent, Loop, Parallel, Sequential, tool
from offbook.runtime import (
    ActorSystem,
    AgentEvent,
    Message,
    Runner,
    ToolCall,
    add_session_value,
    get_session_value,
)


class Remembering:
    """A model that answers from what it is shown, whoever asks."""

    async def generate(self, request):
        asked = next(message.text for message in request.messages if message.role == "user")
        if request.messages[-1].role != "tool" and request.tools:
            return Message.assistant("", (ToolCall("c", "remember", f'{{"text": "{asked}"}}'),))
        await asyncio.sleep(0)
        return Message.assistant(f"{asked} of {len(request.messages)}")


@tool
async def remember(text: str) -> str:
    """Remember."""
    before, found = get_session_value("text")
    assert not found or before == text
    add_session_value("text", text)
    await asyncio.sleep(0)
    return text


class Counting(Agent):
    async def run(self, input, context):
        context.state["count"] = context.state.get("count", 0) + 1
        await asyncio.sleep(0)
        yield AgentEvent.say(
            f"{input.messages[0].text} {context.state['count']} {context.session['text']}"
        )


def team():
    talker = ChatModelAgent(name="talker", model=Remembering(), tools=[remember])
    return Sequential(
        name="s",
        sub_agents=[
            talker,
            Loop(name="l", max_iterations=2, sub_agents=[Counting(name="c")]),
            Parallel(name="p", sub_agents=[Counting(name="d")]),
        ],
    )


def expected(name):
    return ["", name, f"{name} of 3", f"{name} 1 {name}", f"{name} 1 {name}", f"{name} 1 {name}"]


def test_g11_five_hundred_runs_of_one_definition_at_once(run):
    async def main():
        async with ActorSystem() as system:
            runner = Runner(team(), system=system)
            results = await asyncio.gather(
                *[asyncio.ensure_future(runner.query(f"n{number}")) for number in range(500)]
            )
            assert system.stats().actors == 0
        for number, result in enumerate(results):
            assert [event.message.text for event in result.events] == expected(f"n{number}")
            assert result.session_values == {"text": f"n{number}"}

    run(main())


def test_g11_runs_in_several_threads_and_loops_share_a_definition():
    definition = team()
    problems = []

    def in_loop(number):
        async def main():
            results = await asyncio.gather(
                *[
                    asyncio.ensure_future(Runner(definition).query(f"t{number}r{one}"))
                    for one in range(20)
                ]
            )
            for one, result in enumerate(results):
                if [event.message.text for event in result.events] != expected(f"t{number}r{one}"):
                    problems.append(result)

        asyncio.run(main())

    threads = [threading.Thread(target=in_loop, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []


def test_g11_one_definition_stands_in_several_trees(run):
    async def main():
        shared = Counting(name="shared")
        trees = [Sequential(name=f"tree{number}", sub_agents=[shared]) for number in range(3)]
        results = [await Runner(tree).query("x", session_values={"text": "y"}) for tree in trees]
        assert [result.events[0].run_path for result in results] == [
            (f"tree{number}", "shared") for number in range(3)
        ]

    run(main())
