"""Loop: an author and a critic take turns, until the critic breaks the loop; at most five times.

python examples/loop.py
"""

import asyncio

from models import model
from show import show

from offbook import BreakLoop, ChatModelAgent, Loop, Runner, ToolCalls, ToolContext, tool


@tool(return_directly=True)
def approve(reason: str, context: ToolContext) -> str:
    """Approve the text: no more rounds are needed."""
    context.send_action(BreakLoop())
    return f"approved: {reason}"


author = ChatModelAgent(
    name="Author",
    instruction=(
        "Write what you are asked for in one or two sentences. If a critic has said something "
        "about your text, write it anew."
    ),
    model=model(
        "A multimodal embedding model turns things into vectors.",
        "A multimodal embedding model turns texts, images and sounds into vectors of one "
        "space, so that a picture of a cat lies near the word.",
    ),
)
critic = ChatModelAgent(
    name="Critic",
    instruction=(
        "Say in one sentence what the text lacks for a newcomer. If it lacks nothing, call approve."
    ),
    tools=[approve],
    model=model(
        "Which things, and what is it good for?",
        ToolCalls(approve={"reason": "clear, with an example"}),
    ),
)
improved = Loop(name="Improve", sub_agents=[author, critic], max_iterations=5)


async def main() -> None:
    async for event in Runner(improved).query(
        "Briefly introduce what a multimodal embedding model is."
    ):
        show(event)


if __name__ == "__main__":
    asyncio.run(main())
