"""Shows a run in a terminal: the agents' names, their text as it streams, and each tool call in one
line.

Only one agent can stream at a time; the messages of others are shown when they are complete.
"""

from __future__ import annotations

import json
from typing import Final

from ...data.chat import Message, ToolCall
from ...data.events import AgentEvent, BreakLoop, Exit, Interrupted, TransferToAgent
from ...errors import RunCancelled
from ...shown_text import in_line
from .screen import Screen, WordWrap, one_line

__all__ = ["EventView", "call_text"]

_COLOURS: Final = (
    "cyan",
    "green",
    "magenta",
    "yellow",
    "blue",
    "bright_cyan",
    "bright_green",
    "bright_magenta",
)


def call_text(name: str, arguments: str, most: int) -> str:
    """Format a call as in a program: `get_weather(city="Paris")`."""
    try:
        given = json.loads(arguments or "{}")
    except ValueError:
        given = None
    inner = (
        ", ".join(f"{key}={json.dumps(value, ensure_ascii=False)}" for key, value in given.items())
        if isinstance(given, dict)
        else arguments
    )
    return one_line(f"{name}({inner})", most)


class EventView:
    """Shows the events of one run, or of several, one after the other."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._colours: dict[str, str] = {}
        self._speaker = ""  # the agent whose name was written last
        self._streaming = ""  # the invocation that streams at this moment
        # The call in the last line, which its result may follow.
        self._open_call: str | None = None
        self._column_used = False  # whether the current line is not empty
        # Wraps the streamed text between words.
        self._words: WordWrap | None = None

    def show(self, event: AgentEvent) -> None:
        """Show an event."""
        if event.delta is not None:
            self._delta(event)
            return
        message, error = event.message, event.error
        if message is not None:
            self._message(event, message)
        elif event.custom_output is not None:
            self._aside(event, one_line(repr(event.custom_output), self._room()))
        if event.action is not None:
            self._action(event)
        if error is not None:
            self.end()
            text, style = (
                (f"cancelled: {error}", "yellow")
                if isinstance(error, RunCancelled)
                else (f"failed: {type(error).__name__}: {error}", "red")
            )
            self._screen.say(
                f"{in_line(event.agent_name) or 'run'} {' '.join(text.split())}", style
            )

    def end(self) -> None:
        """End the current line."""
        if self._words is not None:
            self._screen.write(self._words.flush())
            self._words = None
        if self._column_used:
            self._screen.say()
        self._column_used, self._open_call, self._streaming = False, None, ""

    # --- messages ---

    def _delta(self, event: AgentEvent) -> None:
        assert event.delta is not None
        if event.error is not None:
            if self._streaming == event.invocation_id:
                self.end()
            self._aside(event, f"starts again: {one_line(str(event.error), self._room())}")
            return
        text = event.delta.content
        if not text or (self._streaming and self._streaming != event.invocation_id):
            return
        if not self._streaming:
            self._speak(event)
            self._streaming = event.invocation_id
            self._words = WordWrap(self._screen.width) if self._screen.is_terminal else None
        self._screen.write(text if self._words is None else self._words.feed(text))
        self._column_used = True

    def _message(self, event: AgentEvent, message: Message) -> None:
        if message.role == "tool":
            self._result(event, message)
            return
        if self._streaming == event.invocation_id and self._streaming:
            self.end()  # its deltas were shown
        elif message.text:
            self._speak(event)
            words = WordWrap(
                self._screen.width if self._screen.is_terminal else len(message.text) + 1
            )
            self._screen.say(words.feed(message.text) + words.flush())
            self._column_used = False
        for call in message.tool_calls:
            self._call(event, call)

    def _speak(self, event: AgentEvent) -> None:
        self.end()
        self._named(event)

    def _named(self, event: AgentEvent) -> None:
        """Write the agent's name, if it is another one than before."""
        if event.agent_name != self._speaker:
            self._speaker = event.agent_name
            colour = self._colours.setdefault(
                event.agent_name, _COLOURS[len(self._colours) % len(_COLOURS)]
            )
            self._screen.say(in_line(event.agent_name), f"bold {colour}")

    # --- actions ---

    def _room(self) -> int:
        return self._screen.width - 6

    def _aside(self, event: AgentEvent, text: str) -> None:
        self._speak(event)
        self._screen.say(f"  {text}", "dim")

    def _call(self, event: AgentEvent, call: ToolCall) -> None:
        if call.name == "transfer_to_agent":
            return  # the transfer itself is shown
        self._speak(event)
        self._screen.write(f"  · {call_text(call.name, call.arguments, self._room())}", "dim")
        self._column_used, self._open_call = True, call.id

    def _result(self, event: AgentEvent, message: Message) -> None:
        if isinstance(event.action, TransferToAgent):
            return
        text = f" → {one_line(message.text, self._room()) or '(nothing)'}"
        if self._open_call is None or self._open_call != message.tool_call_id:
            self._speak(event)
            text = f"  · {in_line(message.tool_name or 'tool')}{text}"
        elif len(text) > self._room() // 2:
            self._screen.say()
            text = f"   {text}"
        self._screen.say(text, "dim")
        self._column_used, self._open_call = False, None

    def _action(self, event: AgentEvent) -> None:
        match event.action:
            case TransferToAgent(name):
                self._aside(event, f"→ {in_line(name)}")
            case Interrupted():
                self.end()
            case BreakLoop():
                self._aside(event, "ends the loop")
            case Exit():
                self._aside(event, "ends the run")
            case _:
                self._aside(event, one_line(repr(event.action), self._room()))
