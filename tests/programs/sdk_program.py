"""A program of the Agents SDK: a handoff, two tools at once, an approval, a session."""

from agents import Agent, function_tool
from agents.testing import ModelCall, ModelStep, ScriptedModel, assistant_message, function_call

import offbook
from offbook.agents_sdk import Runner, SdkAgent, StoreSession, idempotency_key

RUN = "trip-1"
ANSWER = "Your trip to Oslo is booked."
CALLS = {"flight": "travel#0/c2", "taxi": "travel#0/c3", "hotel": "travel#1/c4"}
"""The step of each call."""
KEYS = {"flight": "travel#0/0:", "taxi": "travel#0/1:", "hotel": "travel#1/0:"}
"""What its idempotency key begins with, behind the run's id: the agent's turn, and the call's place
in the reply.
"""


def agents_of(note, replies=16):
    """The agents.

    `note` is called with each call of a tool and its key, and with each call of the model and how
    many results it knows of.
    """

    @function_tool
    def book_flight(to: str) -> str:
        """Book a flight."""
        note("flight", idempotency_key())
        return f"flight to {to}: booked"

    @function_tool
    async def book_taxi(to: str) -> str:
        """Book a taxi."""
        note("taxi", idempotency_key())
        return f"taxi to {to}: booked"

    @function_tool(needs_approval=True)
    async def book_hotel(city: str) -> str:
        """Book a hotel."""
        note("hotel", idempotency_key())
        return f"hotel in {city}: booked"

    def answer(call: ModelCall):
        """What a model would say: it looks at what it is given, as any model does."""
        results = [
            item["output"] for item in call.input if item.get("type") == "function_call_output"
        ]
        note("model", len(results))
        return [
            [function_call("transfer_to_travel", {}, call_id="c1")],
            [
                function_call("book_flight", {"to": "Oslo"}, call_id="c2"),
                function_call("book_taxi", {"to": "Oslo"}, call_id="c3"),
            ],
            None,
            [function_call("book_hotel", {"city": "Oslo"}, call_id="c4")],
            [assistant_message(ANSWER)],
        ][len(results)]

    model = ScriptedModel([ModelStep.respond(answer) for _ in range(replies)])
    travel = Agent(
        name="travel",
        instructions="Book trips.",
        model=model,
        tools=[book_flight, book_taxi, book_hotel],
    )
    return Agent(
        name="desk", instructions="Hand off to whoever can help.", model=model, handoffs=[travel]
    )


async def first_half(agent, store, session_store, *, streamed):
    """Up to the approval. Returns the SDK's result."""
    session = StoreSession(session_store, "s")
    if not streamed:
        return await Runner.run(
            agent, "A trip to Oslo, please.", store=store, run_id=RUN, session=session
        )
    result = Runner.run_streamed(
        agent, "A trip to Oslo, please.", store=store, run_id=RUN, session=session
    )
    async for _ in result.stream_events():
        pass
    return result


def stored(agent, store, session_store):
    """What continues the run in any process."""
    definition = SdkAgent(
        agent, session_factory=lambda session_id: StoreSession(session_store, session_id)
    )
    return offbook.Runner(definition, store=store, durability="step")


async def second_half(runner):
    """Whatever is left of the run, in any process: it is recovered, and the approval is given.

    Returns the result.
    """
    for run in await runner.recover():
        result = await run
        if result.status == "completed":
            return result
    info = await runner.info(RUN)
    if info.status == "completed":
        return await runner.attach(RUN)
    return await runner.resume(RUN, {one.id: True for one in info.waiting} or None)
