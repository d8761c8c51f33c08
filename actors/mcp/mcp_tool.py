"""One tool of an MCP server.

Its call shows progress, interrupts the run for a question of the server, and is cancelled on the
server if it is cancelled here. A slow consumer does not block the connection, which other calls
share.
"""

from __future__ import annotations

import asyncio
import json
import re
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final

from ...runtime.data.events import AgentEvent
from ...runtime.tasks import start_task
from ..tools.tool import Approval, Tool
from ..tools.tool_context import ToolContext, call_state_of
from .content import returned

if TYPE_CHECKING:
    from ...runtime.mcp.connection import Connection, Elicitation

__all__ = ["McpTool", "shown_name"]

_BETWEEN: Final = 0.1
"""Seconds between two progress events of a call. Each event is stored."""
_LONGEST_WORD: Final = 500
_NOT_IN_A_NAME: Final = re.compile(r"[^A-Za-z0-9_-]")


def shown_name(name: str) -> str:
    """Convert the server's name of a tool to the name that a model sees."""
    return _NOT_IN_A_NAME.sub("_", name)[:64]


class McpTool(Tool):
    """A tool whose calls a server performs."""

    def __init__(
        self, connection: Connection, given: Any, needs_approval: Approval, timeout: float | None
    ) -> None:
        own = self.__dict__
        own["_connection"], own["_given_name"] = connection, given.name
        schema = json.dumps(given.input_schema, sort_keys=True, default=str)
        own["origin"] = (
            f"{given.name} "
            f"{blake2b(schema.encode('utf-8', 'surrogatepass'), digest_size=8).hexdigest()}"
        )
        super().__init__(
            name=shown_name(given.name),
            description=given.description or given.title or "",
            parameters=dict(given.input_schema),
            call=self._play,
            strict=False,  # strict mode would turn an omitted argument into null
            needs_approval=needs_approval,
            timeout=timeout,
        )

    async def _play(self, context: ToolContext, arguments: dict[str, Any]) -> object:
        name: str = self.__dict__["_given_name"]
        from ..tools.function_schema import fitted  # noqa: PLC0415 -- imports pydantic

        # The same values that the approval policy saw: a lenient server might read the string
        # "false" as true.
        arguments = fitted(arguments, self.spec.parameters)
        call = _Call(context)
        task = start_task(
            self.__dict__["_connection"].call(name, arguments, call.progress, call.asked),
            f"tool {self.name}",
        )
        try:
            while not task.done():
                await call.something_or(task)
                await call.show()
                call.answer()  # interrupts the run if there is no answer yet
            return returned(self.name, task.result())
        finally:
            task.cancel()
            await asyncio.wait((task,))
            if not task.cancelled():
                task.exception()


class _Call:
    """The messages from the server during one call."""

    def __init__(self, context: ToolContext) -> None:
        self._context = context
        self._news = asyncio.Event()
        # The latest one; older ones that were not shown yet are dropped.
        self._progress: dict[str, Any] | None = None
        self._next = 0.0
        self._question: tuple[Elicitation, asyncio.Future[Any]] | None = None

    async def progress(self, progress: float, total: float | None, message: str | None) -> None:
        self._progress = {
            "progress": progress,
            "total": total,
            "message": None if message is None else message[:_LONGEST_WORD],
        }
        self._news.set()

    async def asked(self, elicitation: Elicitation) -> Any:
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._question = (elicitation, answer)
        self._news.set()
        return await answer

    async def something_or(self, task: asyncio.Task[Any]) -> None:
        news = asyncio.ensure_future(self._news.wait())
        try:
            await asyncio.wait((task, news), return_when=asyncio.FIRST_COMPLETED)
        finally:
            news.cancel()
        self._news.clear()

    async def show(self) -> None:
        runtime = call_state_of(self._context).runtime
        if self._progress is not None and runtime.clock.monotonic() >= self._next:
            said, self._progress = self._progress, None
            self._next = runtime.clock.monotonic() + _BETWEEN
            await runtime.emit(AgentEvent.of(None, None, said))

    def answer(self) -> None:
        asked, self._question = self._question, None
        if asked is not None:
            elicitation, answer = asked
            info = {
                "message": elicitation.message,
                "schema": elicitation.schema,
                "url": elicitation.url,
            }
            said = self._context.interrupt(
                {name: value for name, value in info.items() if value is not None}
            )
            if not answer.done():
                answer.set_result(said)
