"""A trip: a router hands over to a team, three agents research at once, and a booking waits to be
approved.

Owns: these agents, and the log of the calls of their models, by which the demo shows which calls
were made twice. The replies are written down here, and come after a while, as those of a real model
do.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

from ...runtime.data.chat import Message
from ...runtime.models import ModelRequest, ScriptedModel, ToolCalls
from ..chat_agent.chat_model_agent import ChatModelAgent
from ..tools.tool import tool
from ..workflow import Parallel, Sequential

__all__ = ["CALLS", "QUESTION", "trip"]

CALLS: Final = "calls.jsonl"
QUESTION: Final = "Plan me a Saturday in Paris, and book the train."
_MANY: Final = 8


def trip(folder: Path, pace: float) -> Sequential | ChatModelAgent:
    """The agents.

    Their models take their seconds times `pace`, and write each call to the log in that folder.
    """

    @tool
    async def get_forecast(city: str) -> str:
        """The weather of a city on Saturday."""
        await asyncio.sleep(0.5 * pace)
        return f"{city}: sunny, 24 degrees"

    @tool(needs_approval=True)
    async def book_train(city: str, euros: int) -> str:
        """Book a train."""
        await asyncio.sleep(0.3 * pace)
        return f"booked: {city}, 9:14, seat 42, {euros} euros"

    def model(
        name: str, seconds: float, reply: Callable[[ModelRequest], str | ToolCalls]
    ) -> _Logged:
        return _Logged(name, folder / CALLS, ScriptedModel([reply] * _MANY, delay=seconds * pace))

    def forecast(request: ModelRequest) -> str | ToolCalls:
        return (
            "Take a hat, not an umbrella: 24 degrees, and sunny."
            if _has_result(request)
            else ToolCalls(get_forecast={"city": "Paris"})
        )

    def booking(request: ModelRequest) -> str | ToolCalls:
        last = request.messages[-1]
        if last.role != "tool":
            return ToolCalls(book_train={"city": "Paris", "euros": 89})
        if "denied" in last.text:
            return (
                "Then without the train: see the Louvre at nine, have lunch at Chartier, and "
                "take a hat."
            )
        return (
            "Your Saturday: the train at 9:14, the Louvre before the queue, lunch at Chartier, "
            "and a hat."
        )

    weather = ChatModelAgent(
        name="Weather",
        instruction="Tell the weather.",
        tools=[get_forecast],
        model=model("Weather", 0.5, forecast),
    )
    food = ChatModelAgent(
        name="Food",
        instruction="Name a place to eat.",
        model=model("Food", 0.9, lambda _: "Chartier: loud, quick, and a hundred years old."),
    )
    sights = ChatModelAgent(
        name="Sights",
        instruction="Name a sight.",
        model=model("Sights", 2.6, lambda _: "The Louvre, at nine, before the queue."),
    )
    booker = ChatModelAgent(
        name="Booker",
        instruction="Book what is needed, then sum up.",
        tools=[book_train],
        model=model("Booker", 0.7, booking),
    )
    research = Parallel(name="Research", sub_agents=[weather, food, sights])
    planner = Sequential(
        name="Planner", description="plans trips, and books them", sub_agents=[research, booker]
    )
    return ChatModelAgent(
        name="Router",
        instruction="Hand over to who can help.",
        model=model(
            "Router", 0.6, lambda _: ToolCalls(transfer_to_agent={"agent_name": "Planner"})
        ),
        sub_agents=[planner],
    )


class _Logged:
    """A model that writes down each call before it is made."""

    def __init__(self, name: str, log: Path, model: ScriptedModel) -> None:
        self._name, self._log, self._model = name, log, model

    async def generate(self, request: ModelRequest) -> Message:
        with self._log.open("a") as log:
            log.write(json.dumps({"agent": self._name, "process": os.getpid()}) + "\n")
        return await self._model.generate(request)


def _has_result(request: ModelRequest) -> bool:
    last: Message = request.messages[-1]
    return last.role == "tool"
