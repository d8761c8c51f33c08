"""Session values, which the agents and tools of a run share.

One tool sets a value, another one reads it, and an instruction contains both.

python examples/session_values.py
"""

import asyncio

from models import model
from show import show

from offbook import ChatModelAgent, Runner, Sequential, ToolCalls, ToolContext, tool
from offbook.runtime import add_session_value, get_session_value


@tool
def set_user_name(name: str) -> str:
    """Remember the user's name."""
    add_session_value("user_name", name)  # needs no context
    return "remembered"


@tool
async def set_user_age(age: int, context: ToolContext) -> str:
    """Remember the user's age."""
    name, is_known = get_session_value("user_name")  # the value of the other tool
    context.session["user_age"] = age  # the same values
    return f"{name if is_known else 'the user'} is {age}"


listener = ChatModelAgent(
    name="Listener",
    instruction=(
        "Remember the user's name, and then the age, with one tool after the other. Then say: Done."
    ),
    tools=[set_user_name, set_user_age],
    model=model(
        ToolCalls(set_user_name={"name": "Alice"}), ToolCalls(set_user_age={"age": 18}), "Done."
    ),
)
greeter = ChatModelAgent(
    name="Greeter",
    instruction="Greet {user_name}, who is {user_age} years old, in one sentence.",
    history="input_only",  # the greeter does not see the listener's messages
    model=model("Welcome, Alice! Eighteen is a fine age."),
)


async def main() -> None:
    run = Runner(Sequential(name="Welcome", sub_agents=[listener, greeter])).query(
        "My name is Alice, my age is 18."
    )
    async for event in run:
        show(event)
    print("session values:", (await run).session_values)


if __name__ == "__main__":
    asyncio.run(main())
