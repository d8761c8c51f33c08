"""The routes that send messages to an agent: in a session, or on the page Try.

They respond with the stream of the run's events. The runs are stored like all others, if the Runner
stores runs, and then continue without the browser. A definition is never changed: another
instruction is an option of one run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from starlette.responses import StreamingResponse
from starlette.routing import BaseRoute, Route

from ..agent.options import InstructionOptions
from ..data.chat import Message
from ..errors import UsageError
from .desk import LABEL
from .looking import EVENT_STREAM
from .requests import answered, body_of, text_of_body

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from ..run.run import Run
    from .desk import Desk

__all__ = ["Talking"]

_LONGEST: Final = 500_000
_MOST_MESSAGES: Final = 200
_ROLES: Final = ("user", "assistant")


class Talking:
    """The handlers."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def routes(self) -> list[BaseRoute]:
        return [
            Route("/api/session/say", answered(self.say), methods=["POST"]),
            Route("/api/try", answered(self.attempt), methods=["POST"]),
        ]

    async def say(self, request: Request) -> Response:
        """Send a message to a session, and stream the run."""
        body = await body_of(request)
        session_id, text = text_of_body(body, "id"), text_of_body(body, "text", _LONGEST)
        start = text_of_body(body, "start", default="root")
        if start not in ("root", "last"):
            raise UsageError("'start' must be 'root' or 'last'.")
        self._desk.feeds.check()
        session = self._desk.playing().session(
            session_id, start="last" if start == "last" else "root"
        )
        return self._stream(session.query(text, streaming=True, detached=True))

    async def attempt(self, request: Request) -> Response:
        """Run once with other instructions: with new messages, or with the input of another run."""
        body = await body_of(request)
        again = text_of_body(body, "again", default="")
        messages = (
            (await self._desk.steps_of(await self._desk.list.one(again)).asked())[0]
            if again
            else _messages(body)
        )
        self._desk.feeds.check()
        runner, keeps = self._desk.playing(), self._desk.keeps_runs
        run = runner.run(
            messages,
            streaming=True,
            detached=keeps,
            options=_instructions(body, self._desk.agents()),
            labels={LABEL: "try"} if keeps else None,
        )
        return self._stream(run)

    def _stream(self, run: Run) -> Response:
        return StreamingResponse(
            self._desk.feeds.stream(run, name_first=True), media_type=EVENT_STREAM
        )


def _messages(body: dict[str, Any]) -> tuple[Message, ...]:
    """Return a text, or the conversation so far, as messages."""
    given = body.get("messages")
    if given is None:
        return (Message.user(text_of_body(body, "text", _LONGEST)),)
    if not isinstance(given, list) or not 0 < len(given) <= _MOST_MESSAGES:
        msg = f"'messages' must be a list of 1 to {_MOST_MESSAGES} objects with role and text."
        raise UsageError(msg)
    found = []
    for one in given:
        role = one.get("role") if isinstance(one, dict) else None
        if role not in _ROLES:
            msg = f"'messages': each role must be one of {', '.join(_ROLES)}."
            raise UsageError(msg)
        text = text_of_body(one, "text", _LONGEST)
        found.append(Message.user(text) if role == "user" else Message.assistant(text))
    return tuple(found)


def _instructions(body: dict[str, Any], agents: dict[str, Any]) -> list[InstructionOptions]:
    """Return the instructions that this run overrides, by the names of their agents."""
    given = body.get("instructions", {})
    if not isinstance(given, dict):
        raise UsageError(
            "'instructions' must be an object that maps names of agents to their instructions in "
            "this run."
        )
    known = agents["instructions"]
    found = []
    for name, text in given.items():
        if name not in known:
            msg = (
                f"'instructions': {name[:80]!r} is not an agent with an instruction. These are: "
                f"{', '.join(known) or 'none'}."
            )
            raise UsageError(msg)
        if not isinstance(text, str) or len(text) > _LONGEST:
            msg = (
                f"'instructions': that of {name[:80]!r} must be a string of at most {_LONGEST:,} "
                "characters."
            )
            raise UsageError(msg)
        found.append(InstructionOptions(text, agents=(name,)))
    return found
