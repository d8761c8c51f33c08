"""Talking to an agent at a terminal.

Owns: `run_demo_loop`. It must never keep more than the conversation.
"""

from __future__ import annotations

import asyncio
from typing import Any

from openai.types.responses.response_text_delta_event import ResponseTextDeltaEvent

from .run import DEFAULT_MAX_TURNS, Runner
from .stream_events import AgentUpdatedStreamEvent, RawResponsesStreamEvent, RunItemStreamEvent

__all__ = ["run_demo_loop"]


async def run_demo_loop(agent: Any, *, stream: bool = True, context: Any = None, max_turns: int | None = DEFAULT_MAX_TURNS) -> None:
    """Read what is typed and show what the agent says, until `exit`, `quit` or the end of the input."""
    items: list[Any] = []
    while True:
        try:
            typed = input(" > ")
        except (EOFError, KeyboardInterrupt):
            print()
            return
        if typed.strip().lower() in ("exit", "quit"):
            return
        if not typed:
            await asyncio.sleep(0)
            continue
        items.append({"role": "user", "content": typed})
        result: Any
        if stream:
            result = Runner.run_streamed(agent, items, context=context, max_turns=max_turns)
            async for event in result.stream_events():
                _show(event)
            print()
        else:
            result = await Runner.run(agent, items, context=context, max_turns=max_turns)
            if result.final_output is not None:
                print(result.final_output)
        agent, items = result.last_agent, result.to_input_list()


def _show(event: Any) -> None:
    if isinstance(event, RawResponsesStreamEvent) and isinstance(event.data, ResponseTextDeltaEvent):
        print(event.data.delta, end="", flush=True)
    elif isinstance(event, RunItemStreamEvent) and event.item.type == "tool_call_item":
        print("\n[tool called]", flush=True)
    elif isinstance(event, RunItemStreamEvent) and event.item.type == "tool_call_output_item":
        print(f"\n[tool output: {event.item.output}]", flush=True)
    elif isinstance(event, AgentUpdatedStreamEvent):
        print(f"\n[Agent updated: {event.new_agent.name}]", flush=True)
