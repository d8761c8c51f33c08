"""A project manager: a supervisor of a researcher that asks the user, a coder with a knowledge
base, and a review that is a Sequential of three.

The researcher is interrupted deep in the team, twice. Each time, the run resumes there with the
answer.

python examples/project_manager.py
"""

import asyncio
from collections.abc import Callable, Sequence

from models import model
from show import ask, show

from offbook import (
    ChatModelAgent,
    MemoryStore,
    Runner,
    Sequential,
    Supervisor,
    Tool,
    ToolCalls,
    ToolContext,
    tool,
)


@tool
def ask_for_clarification(question: str, context: ToolContext) -> str:
    """Ask the user if the search needs more information."""
    return str(context.interrupt(question))


def web_search(query: str) -> str:
    """Search the web."""
    return f"3 results for {query!r}: a chat needs a loop, a history and a model"


def knowledge_base(question: str) -> str:
    """Look up the coding conventions."""
    return f"{question}: one file, no classes where a function will do"


def to(agent_name: str) -> ToolCalls:
    """Return a reply that transfers."""
    return ToolCalls(transfer_to_agent={"agent_name": agent_name})


def expert(
    name: str,
    instruction: str,
    *replies: str | ToolCalls,
    tools: Sequence[Tool | Callable[[str], str]] = (),
) -> ChatModelAgent:
    return ChatModelAgent(
        name=name,
        description=instruction,
        instruction=instruction,
        tools=tools,
        model=model(*replies),
    )


ANSWERS = {"Web or terminal?": "terminal", "Which model?": "a small one that runs here"}
first, second = (ToolCalls(ask_for_clarification={"question": question}) for question in ANSWERS)
search, look_up = (
    ToolCalls(web_search={"query": "AI chat"}),
    ToolCalls(knowledge_base={"question": "style"}),
)
plan = "Find a feasible plan, with web_search. Ask the user what you need to know for it."
researcher = expert(
    "ResearchAgent",
    plan,
    first,
    search,
    second,
    "A loop that keeps the history.",
    tools=[web_search, ask_for_clarification],
)
coder = expert(
    "CodeAgent",
    "Write the code, by the rules of knowledge_base.",
    look_up,
    "while True: print(chat(input()))",
    tools=[knowledge_base],
)
review = Sequential(
    name="ReviewAgent",
    description="Reviews a plan or code.",
    sub_agents=[
        expert("QuestionAnalysis", "Say what the work must fulfil.", "It must chat, and remember."),
        expert("GenerateReview", "Judge the work by that.", "It chats, but forgets."),
        expert(
            "ReviewValidation", "Say whether the judgement is fair.", "Fair: there is no history."
        ),
    ],
)
script = (
    to("ResearchAgent"),
    to("CodeAgent"),
    to("ReviewAgent"),
    "Here is a first version; its history comes next.",
)
manager = expert(
    "ProjectManager",
    "Have things researched, then coded, then reviewed. One agent at a time; then report.",
    *script,
)


async def main() -> None:
    team = Supervisor(supervisor=manager, sub_agents=[researcher, coder, review])
    runner = Runner(team, streaming=True, store=MemoryStore())
    run = runner.query("Please make a simple AI chat project in Python.", checkpoint_id="1")
    while True:
        async for event in run:
            show(event)
        waiting = (await run).interrupts
        if not waiting:
            break
        run = runner.resume(
            "1", {one.id: ask(one.info, ANSWERS.get(one.info, "as you like")) for one in waiting}
        )


if __name__ == "__main__":
    asyncio.run(main())
