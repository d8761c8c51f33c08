"""A tool: the model asks for it, a plain function answers, and the model says what it makes of that.

python examples/books.py
"""

import asyncio

from models import model
from show import show

from understudy.actors import ChatModelAgent, tool
from understudy.runtime import Runner, ToolCalls

BOOKS = {
    "fantasy": [("The Hobbit", 310), ("Jonathan Strange & Mr Norrell", 782)],
    "mystery": [("The Hound of the Baskervilles", 256)],
}


@tool
def search_books(genre: str, max_pages: int = 1000) -> list[str]:
    """Search the library.

    Args:
        genre: such as fantasy or mystery
        max_pages: the longest that the book may be
    """
    return [title for title, pages in BOOKS.get(genre.lower(), []) if pages <= max_pages]


recommender = ChatModelAgent(
    name="BookRecommender",
    instruction="You recommend books. Look for them with search_books, and recommend one that it has found.",
    tools=[search_books],
    model=model(
        ToolCalls(search_books={"genre": "fantasy", "max_pages": 400}),
        "Read The Hobbit: a fantasy of 310 pages.",
    ),
)


async def main() -> None:
    async for event in Runner(recommender).query("Recommend a fantasy book to me, of 400 pages at most."):
        show(event)


if __name__ == "__main__":
    asyncio.run(main())
