"""A conversation in the terminal.

It has Swarm's appearance: names in blue, calls of functions in purple. An exception of `input` ends
it.
"""

# ruff: noqa: T201, FBT001, FBT002 -- it prints; the parameters and their order are Swarm's
from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .core import Swarm
from .types import Agent, Client, InitialVariables, MessageDict, Piece, Response

__all__ = ["pretty_print_messages", "process_and_print_streaming_response", "run_demo_loop"]


def process_and_print_streaming_response(response: Iterable[Piece]) -> Response | None:
    """Print the deltas of a streamed run as they arrive. Return its response."""
    content = sender = ""
    for piece in response:
        sender = piece.get("sender", sender)
        text = piece.get("content")
        if text:
            if not content and sender:
                print(f"\033[94m{sender}:\033[0m", end=" ", flush=True)
                sender = ""
            print(text, end="", flush=True)
            content += text
        for call in piece.get("tool_calls") or ():
            name = call["function"]["name"]
            if name:
                print(f"\033[94m{sender}: \033[95m{name}\033[0m()")
        if piece.get("delim") == "end" and content:
            print()
            content = ""
        if "response" in piece:
            whole: Response = piece["response"]
            return whole
    return None


def pretty_print_messages(messages: Sequence[Mapping[str, Any]]) -> None:
    """Print the messages of agents, and the functions that they call."""
    for message in messages:
        if message["role"] != "assistant":
            continue
        print(f"\033[94m{message['sender']}\033[0m:", end=" ")
        if message["content"]:
            print(message["content"])
        calls = message.get("tool_calls") or ()
        if len(calls) > 1:
            print()
        for call in calls:
            arguments = json.dumps(json.loads(call["function"]["arguments"])).replace(":", "=")
            print(f"\033[95m{call['function']['name']}\033[0m({arguments[1:-1]})")


def run_demo_loop(
    starting_agent: Agent,
    context_variables: InitialVariables = None,
    stream: bool = False,
    debug: bool = False,
    *,
    client: Client | None = None,
) -> None:
    """Talk with agents, starting with this one, until the input ends or the user interrupts it.

    The end of the input raises `EOFError`. `client` is that of `Swarm`.
    """
    swarm = Swarm() if client is None else Swarm(client)
    print("Starting Swarm CLI 🐝")
    messages: list[MessageDict] = []
    agent: Agent | None = starting_agent
    while True:
        messages.append({"role": "user", "content": input("\033[90mUser\033[0m: ")})
        assert agent is not None
        if stream:
            pieces = swarm.run(
                agent=agent,
                messages=messages,
                context_variables=context_variables or {},
                stream=True,
                debug=debug,
            )
            response = process_and_print_streaming_response(pieces)
            assert response is not None  # the last delta
        else:
            response = swarm.run(
                agent=agent,
                messages=messages,
                context_variables=context_variables or {},
                debug=debug,
            )
            pretty_print_messages(response.messages)
        messages.extend(response.messages)
        agent = response.agent
