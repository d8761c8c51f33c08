"""An agent without a model: it does what you write in `run`.

It may be used wherever an agent may, here after another one in a Sequential.

python examples/custom_agent.py
"""

import asyncio
from collections.abc import AsyncIterator

from models import model
from show import show

from offbook import Agent, AgentContext, AgentEvent, AgentInput, ChatModelAgent, Runner, Sequential


class WordCounter(Agent):
    """Counts the words of the author's text in the session values, and puts their number there."""

    async def run(self, input: AgentInput, context: AgentContext) -> AsyncIterator[AgentEvent]:  # noqa: A002, ARG002
        words = len(context.session["text"].split())
        context.session["words"] = words
        yield AgentEvent.say(f"That makes {words} words.")


author = ChatModelAgent(
    name="Author",
    instruction="Answer in one short sentence.",
    output_key="text",  # the session value that holds its answer
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
