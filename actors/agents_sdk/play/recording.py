"""What the runtime records of a turn, and what is done once.

Owns: a reply and each result as an event of the run; and, where the run is kept, the results of calls as steps, so that a run which goes on after a crash makes
none of them again. It must never record anything twice.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from ....runtime.data.events import AgentEvent
from ..items.messages import message_of_output, message_of_response

if TYPE_CHECKING:
    from ....runtime.agent.door import AgentDoor
    from ....runtime.data.chat import Message
    from ....runtime.data.events import Action
    from ..items import ModelResponse

__all__ = ["Recorder"]


class Recorder:
    """One agent's record in the runtime's run."""

    __slots__ = ("_door", "_known", "keeps")

    def __init__(self, door: AgentDoor) -> None:
        self._door = door
        self._known = len(door.invocation.messages)
        """How many events of this agent are recorded already, because it goes on after a crash: they are not recorded again."""
        self.keeps = door.run.keeps

    async def emit(self, message: Message | None, action: Action | None = None, output: Any = None) -> None:
        """Have something recorded and shown."""
        if self._known and message is not None:
            self._known -= 1
            if action is None:
                return
        await self._door.emit(AgentEvent.of(message, action, output))

    async def response(self, response: ModelResponse, output: Any = None) -> None:
        """A model has answered."""
        message = message_of_response(response)
        if message.text or message.tool_calls or message.reasoning or message.refusal:
            if self._known:
                await self.emit(message, None, output)
            else:
                await self._door.emit(AgentEvent.of(message, None, output))
        elif message.usage is not None:
            self._door.run.usage += message.usage

    async def result(self, item: Any, name: str | None, action: Action | None = None) -> None:
        """A call has ended."""
        message = message_of_output(item.raw_item, name)
        if message is not None or action is not None:
            await self.emit(message, action)

    async def once(self, name: str, make: Callable[[], Awaitable[Any]], to_plain: Callable[[Any], Any], from_plain: Callable[[Any], Any]) -> Any:
        """What `make` returns: made once, if the run is kept."""
        if not self.keeps:
            return await make()
        made: list[Any] = []

        async def step() -> Any:
            made.append(await make())
            return to_plain(made[0])

        plain = await self._door.step(name, step)
        return made[0] if made else from_plain(plain)
