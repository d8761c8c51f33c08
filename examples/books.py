"""A tool that asks the user: the run is interrupted, and resumes with the answer, perhaps much
later.

python examples/books.py
"""

import asyncio

from models import model
from show import ask, show

from offbook import ChatModelAgent, MemoryStore, Runner, ToolCalls, ToolContext, tool

BOOKS = {
    "fantasy": {"The Hobbit": 310, "Jonathan Strange & Mr Norrell": 782},
    "mystery": {"The Hound of the Baskervilles": 256},
}


@tool
def search_books(genre: str, max_pages: int = 1000) -> list[str]:
    """Search the library.

    Args:
        genre: such as fantasy or mystery
        max_pages: the longest that the book may be
    """
    return [title for title, pages in BOOKS.get(genre.lower(), {}).items() if pages <= max_pages]


@tool
def ask_for_clarification(question: str, context: ToolContext) -> str:
    """Ask the user if the request is ambiguous or incomplete."""
    return str(context.interrupt(question))  # the run waits here; after the answer, this returns it


recommender = ChatModelAgent(
    name="BookRecommender",
    instruction=(
        "You recommend books. Look for them with search_books, and recommend one that it has "
        "found. If you do not know what the user likes, ask."
    ),
    tools=[ask_for_clarification, search_books],
    model=model(
        ToolCalls(
            ask_for_clarification={"question": "Which genre do you like, and how long may it be?"}
        ),
        ToolCalls(search_books={"genre": "fantasy", "max_pages": 400}),
        "Read The Hobbit: a fantasy of 310 pages.",
    ),
)


async def main() -> None:
    runner = Runner(recommender, store=MemoryStore())
    run = runner.query("Recommend a book to me.", checkpoint_id="1")
    while True:
        async for event in run:
            show(event)
        waiting = (await run).interrupts
        if not waiting:
            break
        run = runner.resume(
            "1", {waiting[0].id: ask(waiting[0].info, "fantasy, 400 pages at most")}
        )


if __name__ == "__main__":
    asyncio.run(main())
