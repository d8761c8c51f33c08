"""An agent without a model: whatever you write in `run`. It can stand wherever an agent can, here behind another one in a Sequential.

python examples/custom_agent.py
"""

import asyncio
from collections.abc import AsyncIterator

from models import model
from show import show

from understudy.actors import Agent, ChatModelAgent, Sequential
from understudy.runtime import AgentContext, AgentEvent, AgentInput, Runner


class WordCounter(Agent):
    """Counts the words of what the author has left in the session values, and leaves their number there."""

    async def run(self, input: AgentInput, context: AgentContext) -> AsyncIterator[AgentEvent]:  # noqa: A002, ARG002
        words = len(context.session["text"].split())
        context.session["words"] = words
        yield AgentEvent.say(f"That makes {words} words.")


author = ChatModelAgent(
    name="Author",
    instruction="Answer in one short sentence.",
    output_key="text",  # the session value in which its answer is put
    model=model("The curtain rises at eight."),
)
counter = WordCounter(name="WordCounter", description="counts words")
both = Sequential(name="AuthorAndCounter", sub_agents=[author, counter])


async def main() -> None:
    run = Runner(both).query("When does the play begin?")
    async for event in run:
        show(event)
    print("session values:", (await run).session_values)


if __name__ == "__main__":
    asyncio.run(main())
