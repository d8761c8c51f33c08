"""An airline's service desk, written for Swarm: the active agent hands off by a function that
returns the next agent, and each agent has a routine.

python examples/swarm_airline.py
"""

from typing import Any

from show import ask
from swarm_client import client

from offbook.actors.swarm import Agent, Result, Swarm
from offbook.actors.swarm.repl import pretty_print_messages

ROUTINE = """Follow this routine, step by step, and do not tell the customer about it.
If he wants something else, call transfer_to_triage.
What you know of the customer: {customer}. His flight: {flight}.
"""


def routine(steps: str) -> Any:
    """Instructions that know the context variables."""
    return lambda context_variables: ROUTINE.format(**context_variables) + steps


def transfer_to_lost_baggage() -> Agent:
    return lost_baggage


def transfer_to_flight_modification() -> Agent:
    return flight_modification


def transfer_to_flight_change() -> Agent:
    return flight_change


def transfer_to_triage() -> Agent:
    """Call this when the customer needs another agent and another routine."""
    return triage


def valid_to_change_flight(context_variables: dict[str, str]) -> str:
    return f"{context_variables['customer']} may change {context_variables['flight']}"


def change_flight(day: str, context_variables: dict[str, str]) -> Result:
    """Change the customer's flight to another day."""
    return Result(
        value="the flight was changed",
        context_variables={"flight": f"{context_variables['flight'].split(' on ')[0]} on {day}"},
    )


def initiate_baggage_search() -> str:
    return "the bag was found in Denver"


def case_resolved() -> str:
    return "the case is resolved, there are no further questions"


triage = Agent(
    name="Triage Agent",
    instructions=lambda: (
        "Find out what the customer wants, and call the function that transfers to the right "
        "agent. Ask, if you do not know enough."
    ),
    functions=[transfer_to_lost_baggage, transfer_to_flight_modification],
)
flight_modification = Agent(
    name="Flight Modification Agent",
    instructions="Find out what the customer wants to change, and transfer to that agent.",
    functions=[transfer_to_flight_change, transfer_to_triage],
    parallel_tool_calls=False,
)
flight_change = Agent(
    name="Flight Change Agent",
    instructions=routine(
        "1. See whether the flight may be changed. 2. Change it. 3. If there are no further "
        "questions, call case_resolved."
    ),
    functions=[valid_to_change_flight, change_flight, transfer_to_triage, case_resolved],
)
lost_baggage = Agent(
    name="Lost Baggage Agent",
    instructions=routine(
        "1. Have the bag searched. 2. Say where it is. 3. If there are no further questions, "
        "call case_resolved."
    ),
    functions=[initiate_baggage_search, transfer_to_triage, case_resolved],
)


def main() -> None:
    openai, model = client(
        {"transfer_to_flight_modification": {}},
        {"transfer_to_flight_change": {}},
        {"valid_to_change_flight": {}},
        {"change_flight": {"day": "May 22"}},
        "You fly on May 22.",
        {"transfer_to_triage": {}},
        {"transfer_to_lost_baggage": {}},
        {"initiate_baggage_search": {}},
        {"case_resolved": {}},
        "Your bag is in Denver. We send it to you.",
    )
    swarm, agent = Swarm(openai), triage
    variables: dict[Any, Any] = {
        "customer": "Ada Lovelace, a premium customer",
        "flight": "flight 1919 from New York to Los Angeles on May 21",
    }
    messages: list[dict[str, Any]] = []
    for text in ("I want to fly one day later.", "And my bag has not arrived yesterday!"):
        messages.append({"role": "user", "content": ask("How can we help?", text)})
        response = swarm.run(agent, messages, variables, model_override=model)
        pretty_print_messages(response.messages)
        messages += response.messages
        agent, variables = response.agent or agent, response.context_variables
    print(agent.name, variables)


if __name__ == "__main__":
    main()
