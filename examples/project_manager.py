"""A project manager: a supervisor over a researcher with a tool, a coder with a knowledge base, and a review that is a Sequential of three.

python examples/project_manager.py
"""

import asyncio
from collections.abc import Callable, Sequence

from models import model
from show import show

from understudy.actors import ChatModelAgent, Sequential, Supervisor
from understudy.runtime import Runner, ToolCalls


def web_search(query: str) -> str:
    """Search the web."""
    return f"3 results for {query!r}: a chat needs a loop, a history and a model"


def knowledge_base(question: str) -> str:
    """Look up how things are written here."""
    return f"{question}: one file, no classes where a function will do"


def to(agent_name: str) -> ToolCalls:
    """What a model answers in order to hand over."""
    return ToolCalls(transfer_to_agent={"agent_name": agent_name})


def expert(name: str, instruction: str, *replies: str | ToolCalls, tools: Sequence[Callable[[str], str]] = ()) -> ChatModelAgent:
    return ChatModelAgent(name=name, description=instruction, instruction=instruction, tools=tools, model=model(*replies))


search, look_up = ToolCalls(web_search={"query": "AI chat"}), ToolCalls(knowledge_base={"question": "style"})
researcher = expert("ResearchAgent", "Find a feasible plan, with web_search.", search, "A loop that keeps the history.", tools=[web_search])
coder = expert("CodeAgent", "Write the code, by the rules of knowledge_base.", look_up, "while True: print(chat(input()))", tools=[knowledge_base])
review = Sequential(
    name="ReviewAgent",
    description="Reviews a plan or code.",
    sub_agents=[
        expert("QuestionAnalysis", "Say what the work must fulfil.", "It must chat, and remember."),
        expert("GenerateReview", "Judge the work by that.", "It chats, but forgets."),
        expert("ReviewValidation", "Say whether the judgement is fair.", "Fair: there is no history."),
    ],
)
script = (to("ResearchAgent"), to("CodeAgent"), to("ReviewAgent"), "Here is a first version; its history comes next.")
manager = expert("ProjectManager", "Have things researched, then coded, then reviewed. One agent at a time; then report.", *script)


async def main() -> None:
    team = Supervisor(supervisor=manager, sub_agents=[researcher, coder, review])
    async for event in Runner(team, streaming=True).query("Please make a simple AI chat project in Python."):
        show(event)


if __name__ == "__main__":
    asyncio.run(main())
