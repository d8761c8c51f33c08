"""A conversation in the terminal.

Owns: how it looks, which is as Swarm has it: names in blue, calls of functions in purple. It ends by what `input` raises.
"""

# ruff: noqa: T201, FBT001, FBT002 -- it prints; the parameters and their order are Swarm's
from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .core import Swarm
from .types import Agent, Response

__all__ = ["pretty_print_messages", "process_and_print_streaming_response", "run_demo_loop"]


def process_and_print_streaming_response(response: Iterable[dict[str, Any]]) -> Response | None:
    """Print the pieces of a streamed run as they come. Returns its response."""
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
            return piece["response"]  # type: ignore[no-any-return]
    return None


def pretty_print_messages(messages: Sequence[Mapping[str, Any]]) -> None:
    """Print what agents have said, and which functions they have called."""
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
    context_variables: Mapping[Any, Any] | None = None,
    stream: bool = False,
    debug: bool = False,
    *,
    client: Any = None,
) -> None:
    """Talk with agents, beginning with this one, until the input ends (`EOFError`) or somebody interrupts it. `client` is that of `Swarm`."""
    swarm = Swarm() if client is None else Swarm(client)
    print("Starting Swarm CLI 🐝")
    messages: list[Any] = []
    agent: Agent | None = starting_agent
    while True:
        messages.append({"role": "user", "content": input("\033[90mUser\033[0m: ")})
        assert agent is not None
        response: Any = swarm.run(agent=agent, messages=messages, context_variables=context_variables or {}, stream=stream, debug=debug)
        if stream:
            response = process_and_print_streaming_response(response)
        else:
            pretty_print_messages(response.messages)
        messages.extend(response.messages)
        agent = response.agent
