"""PlanExecute: make a plan, execute its first step, revise the plan, and repeat until there is an
answer.

python examples/plan_execute.py
"""

import asyncio

from models import model
from show import show

from offbook import PlanExecute, Runner, ToolCalls, make_executor, make_planner, make_replanner


def search_flights(origin: str, destination: str, date: str) -> str:
    """Search flights."""
    return f"{origin} to {destination} on {date}: CA 982 at 16:50, 780 dollars"


def search_hotels(city: str) -> str:
    """Search hotels."""
    return f"{city}: Lotus Inn, 80 dollars a night"


def search_sights(city: str) -> str:
    """Search for sights."""
    return f"{city}: the Forbidden City, the Summer Palace, the Great Wall at Mutianyu"


FLIGHT = {"origin": "New York", "destination": "Beijing", "date": "2025-10-12"}
trip = PlanExecute(
    planner=make_planner(
        model(ToolCalls(plan={"steps": ["find a flight", "find a hotel", "find sights"]}))
    ),
    executor=make_executor(
        model(
            ToolCalls(search_flights=FLIGHT),
            "CA 982 for 780 dollars.",
            ToolCalls(search_hotels={"city": "Beijing"}, search_sights={"city": "Beijing"}),
            "Lotus Inn; Forbidden City, Summer Palace, Great Wall.",
        ),
        tools=[search_flights, search_hotels, search_sights],
    ),
    replanner=make_replanner(
        model(
            ToolCalls(plan={"steps": ["find a hotel and sights"]}),
            ToolCalls(
                respond={
                    "response": (
                        "Fly with CA 982, stay at the Lotus Inn, and see one sight on each of "
                        "the three days."
                    )
                }
            ),
        )
    ),
    max_iterations=20,
)


async def main() -> None:
    query = (
        "Plan a 3-day trip to Beijing next month: flights from New York, a hotel, and what I "
        "must see. Today is 2025-09-09."
    )
    async for event in Runner(trip).query(query):
        show(event)


if __name__ == "__main__":
    asyncio.run(main())
