"""A shop, in Swarm's words, streamed: a triage agent, sales and refunds, and a database that
belongs to the thread that opened it.

python examples/swarm_shopper.py
"""

import sqlite3
from typing import Any

from show import ask
from swarm_client import client

from offbook.actors.swarm import Agent, Swarm
from offbook.actors.swarm.repl import process_and_print_streaming_response

database = sqlite3.connect(":memory:")
database.executescript("""
    create table products (id, name, price);
    insert into products values (7, 'hat', 19.99), (8, 'wool socks', 29.99);
    create table purchases (user_id, product_id, price);
    insert into purchases values (1, 7, 19.99);
""")


def order_item(product_id: int, context_variables: dict[str, Any]) -> str:
    """Order a product."""
    found = database.execute(
        "select name, price from products where id = ?", (product_id,)
    ).fetchone()
    if found is None:
        return f"there is no product {product_id}"
    database.execute(
        "insert into purchases values (?, ?, ?)",
        (context_variables["user_id"], product_id, found[1]),
    )
    return f"ordered: {found[0]} for ${found[1]}"


def refund_item(product_id: int, context_variables: dict[str, Any]) -> str:
    """Give the money for a product back."""
    of_user = (context_variables["user_id"], product_id)
    found = database.execute(
        "select price from purchases where user_id = ? and product_id = ?", of_user
    ).fetchone()
    return f"refunded: ${found[0]}" if found else "there is no such purchase"


async def notify_customer(method: str) -> str:
    """Notify the customer by `email` or `phone`."""
    return f"notified by {method}"


def transfer_to_sales() -> Agent:
    return sales


def transfer_to_refunds() -> Agent:
    return refunds


def transfer_back_to_triage() -> Agent:
    """Call this when another agent should help the customer."""
    return triage


triage = Agent(
    name="Triage",
    instructions="Transfer the customer to the right agent.",
    functions=[transfer_to_sales, transfer_to_refunds],
)
sales = Agent(
    name="Sales",
    instructions="Sell. You need a product id.",
    functions=[order_item, notify_customer, transfer_back_to_triage],
)
refunds = Agent(
    name="Refunds",
    instructions="Refund. You need a product id.",
    functions=[refund_item, notify_customer, transfer_back_to_triage],
)


def main() -> None:
    openai, model = client(
        {"transfer_to_refunds": {}},
        {"refund_item": {"product_id": 7}, "notify_customer": {"method": "email"}},
        "You get $19.99 back; we have sent you a mail.",
        {"transfer_back_to_triage": {}},
        {"transfer_to_sales": {}},
        {"order_item": {"product_id": 8}},
        "The wool socks are ordered.",
    )
    swarm, agent, messages = Swarm(openai), triage, []
    for text in (
        "I do not want the hat, product 7. Mail me, please.",
        "Then the wool socks, product 8.",
    ):
        messages.append({"role": "user", "content": ask("What is it?", text)})
        response = process_and_print_streaming_response(
            swarm.run(agent, messages, {"user_id": 1}, model_override=model, stream=True)
        )
        assert response is not None
        messages += response.messages
        agent = response.agent or agent
    print([message["content"] for message in messages if message["role"] == "tool"])
    print(database.execute("select * from purchases").fetchall())
    database.close()


if __name__ == "__main__":
    main()
