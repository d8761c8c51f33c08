"""An agent of others, as an agent like any other.

Owns: the definition, and one client for each event loop on which it plays. The SDK is imported when one is made; importing this must not.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TYPE_CHECKING, Any, Self, TypeAlias, Unpack
from urllib.parse import urlsplit

from ...runtime.agent.context import AgentContext
from ...runtime.data.agent_input import AgentInput
from ...runtime.data.chat import Message
from ...runtime.data.events import AgentEvent
from ...runtime.errors import UsageError
from ...runtime.models.wire.loop_clients import LoopClients
from ..agent import Agent, AgentOptions

if TYPE_CHECKING:
    import httpx

    from ...runtime.a2a import A2AClient, A2AMessage, AgentCard, ClientLimits, Credentials, Transport
    from .outputs import OutputConverter

__all__ = ["InputConverter", "RemoteAgent"]

InputConverter: TypeAlias = "Callable[[tuple[Message, ...]], A2AMessage | Message | str | Awaitable[A2AMessage | Message | str]]"

_LONGEST_NAME = 64
_LONGEST_DESCRIPTION = 1_000


class RemoteAgent(Agent):
    """An agent of others, asked over Agent2Agent: in workflows, as a sub-agent, as a tool. Needs the extra `a2a`.

        books = RemoteAgent("https://books.example", name="Books", description="finds books")

    Give the address of a server, or an `AgentCard`, which brings name and description with it. `await RemoteAgent.fetch(url)` gets the card first.

    What the other agent asks for becomes an interrupt, whose `info` is a `RemoteInterrupt` (in an `AuthRequired`, if it is credentials); resume the run with a
    text, a Message or several, or `{id: answer}` for the ids of its questions. Each of its artifacts becomes a message. If its task fails, so does this agent;
    if the run is cancelled, so is the task. A run that another process continues goes on with the same task.

    The context over there goes on where the conversation here does; the session value `a2a:NAME` remembers it.

    `input_converter(messages)` makes the message that begins a task. `output_converter(item)` is given each whole `Artifact`, each `A2AMessage`, and each
    `TaskStatus` with a message while the task works, and returns events, messages, texts or None. Both may be `async def`.
    """

    def __init__(
        self,
        url: str | AgentCard,
        *,
        name: str | None = None,
        description: str | None = None,
        auth: Credentials | None = None,
        http_client: httpx.AsyncClient | None = None,
        input_converter: InputConverter | None = None,
        output_converter: OutputConverter | None = None,
        transport: Transport | None = None,
        handler_path: str = "/a2a",
        limits: ClientLimits | None = None,
        **agent_options: Unpack[AgentOptions],
    ) -> None:
        from ...runtime.a2a import A2AClient, AgentCard, ClientLimits  # noqa: PLC0415 -- an extra, which only those need who have such an agent
        from ...runtime.a2a.client.client import check_address  # noqa: PLC0415 -- as above
        from ...runtime.a2a.sdk import need_sdk  # noqa: PLC0415 -- as above

        need_sdk("RemoteAgent")
        check_address("RemoteAgent", url, transport)
        for what, function in (("input_converter", input_converter), ("output_converter", output_converter)):
            if function is not None and not callable(function):
                msg = f"RemoteAgent({what}={function!r}): give a function."
                raise UsageError(msg)
        if isinstance(url, AgentCard):
            name = name if name is not None else _one_line(url.name, _LONGEST_NAME)
            description = description if description is not None else _one_line(url.description, _LONGEST_DESCRIPTION)
        elif name is None:
            name = _name_of(url)
        super().__init__(name=name, description=description if description is not None else f"the agent at {url}", **agent_options)
        self.url = url
        self.input_converter = input_converter
        self.output_converter = output_converter
        self.limits: ClientLimits = limits if limits is not None else ClientLimits()
        own_limits = self.limits

        def make() -> A2AClient:
            return A2AClient(url, handler_path, auth=auth, http_client=http_client, transport=transport, limits=own_limits)

        make()  # what is wrong with it is said here
        self._clients: LoopClients[A2AClient] = LoopClients(make)

    @classmethod
    async def fetch(cls, url: str, **options: Any) -> Self:
        """Get the agent's card, for its name and description. Takes what the constructor takes."""
        from ...runtime.a2a import A2AClient  # noqa: PLC0415 -- as above

        asked = {name: options[name] for name in ("handler_path", "auth", "http_client", "transport", "limits") if name in options}
        async with A2AClient(url, **asked) as client:
            card = await client.card()
        own = {"name": _one_line(card.name, _LONGEST_NAME), "description": _one_line(card.description, _LONGEST_DESCRIPTION)}
        return cls(url, **{**own, **options})

    async def client(self) -> A2AClient:
        """The client of the running loop. It is closed when the loop ends."""
        return await self._clients.get()

    async def aclose(self) -> None:
        """Close the connections of the running loop. The agent may be used again."""
        await self._clients.aclose()

    def run(self, input: AgentInput, context: AgentContext) -> AsyncIterator[AgentEvent]:  # noqa: A002 -- the contract's
        from .remote_run import RemoteRun  # noqa: PLC0415 -- as above

        return RemoteRun(self, input, context).events()


def _one_line(text: str, longest: int) -> str:
    """A stranger's text, as one line for names and prompts."""
    return " ".join("".join(letter if letter.isprintable() else " " for letter in text[: 4 * longest]).split())[:longest].strip()


def _name_of(url: str) -> str:
    parts = urlsplit(url)
    return re.sub(r"\W+", "_", f"{parts.netloc}{parts.path}").strip("_")[:_LONGEST_NAME] or "remote"
