"""A remote agent, as an agent like any other.

The definition, and one client for each event loop that it runs on. The SDK is imported when a
`RemoteAgent` is made, not with this module.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
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

    from ...runtime.a2a import (
        A2AClient,
        A2AMessage,
        AgentCard,
        ClientLimits,
        ClientTransport,
        Credentials,
        Transport,
    )
    from .outputs import OutputConverter

__all__ = ["InputConverter", "RemoteAgent"]

InputConverter: TypeAlias = (
    "Callable[[tuple[Message, ...]], A2AMessage | Message | str | Awaitable[A2AMessage | Message "
    "| str]]"
)

_LONGEST_NAME = 64
_LONGEST_DESCRIPTION = 1_000


class RemoteAgent(Agent):
    """A remote agent, called over Agent2Agent: in workflows, as a sub-agent, as a tool.

    Needs the extra `a2a`.

        books = RemoteAgent("https://books.example", name="Books", description="finds books")

    Pass the address of a server, or its card (an `AgentCard`, or its JSON as a dict), which
    contains the name and description. `await RemoteAgent.fetch(url)` fetches the card first.

    A question of the other agent becomes an interrupt, whose `info` is a `RemoteInterrupt`; a
    request for credentials is an `AuthRequired` that contains one. Resume the run with a string, a
    Message or several, or `{id: answer}` for the ids of its questions. Each of its artifacts
    becomes a message. If its task fails, so does this agent; if the run is cancelled, so is the
    task. If another process resumes the run, it continues the same task.

    The remote context continues as long as the conversation here does. The session value `a2a:NAME`
    stores its id.

    `input_converter(messages)` makes the first message of a task. `output_converter(item)` receives
    each whole `Artifact`, each `A2AMessage`, and each `TaskStatus` with a message while the task is
    running. It returns events, messages, strings or None. Both may be `async def`.
    """

    skips_transfers = True  # the remote agent does not need to know how it was reached

    def __init__(
        self,
        url: str | AgentCard | Mapping[str, object] | None = None,
        *,
        name: str | None = None,
        description: str | None = None,
        auth: Credentials | None = None,
        http_client: httpx.AsyncClient | None = None,
        input_converter: InputConverter | None = None,
        output_converter: OutputConverter | None = None,
        transport: Transport | ClientTransport | None = None,
        handler_path: str = "/a2a",
        limits: ClientLimits | None = None,
        **agent_options: Unpack[AgentOptions],
    ) -> None:
        from ...runtime.a2a import A2AClient, AgentCard, ClientLimits, ClientTransport  # noqa: PLC0415 -- an extra that only remote agents need
        from ...runtime.a2a.client.client import check_address  # noqa: PLC0415 -- as above
        from ...runtime.a2a.sdk import need_sdk  # noqa: PLC0415 -- as above

        check_address("RemoteAgent", url, transport)
        if not isinstance(transport, ClientTransport):
            need_sdk("RemoteAgent")
        for what, function in (
            ("input_converter", input_converter),
            ("output_converter", output_converter),
        ):
            if function is not None and not callable(function):
                msg = f"RemoteAgent: {what} must be a function, got {function!r}."
                raise UsageError(msg)
        if isinstance(url, str):
            name = name if name is not None else _name_of(url)
            description = description if description is not None else f"the agent at {url}"
        elif url is not None:
            own = (
                (url.name, url.description)
                if isinstance(url, AgentCard)
                else (str(url.get("name", "")), str(url.get("description", "")))
            )
            name = name if name is not None else _one_line(own[0], _LONGEST_NAME)
            description = (
                description if description is not None else _one_line(own[1], _LONGEST_DESCRIPTION)
            )
        super().__init__(
            name=name or "remote", description=description or "a remote agent", **agent_options
        )
        self.url = url
        self.input_converter = input_converter
        self.output_converter = output_converter
        self.limits: ClientLimits = limits if limits is not None else ClientLimits()
        own_limits = self.limits

        def make() -> A2AClient:
            return A2AClient(
                url,
                handler_path,
                auth=auth,
                http_client=http_client,
                transport=transport,
                limits=own_limits,
            )

        make()  # reports invalid arguments now
        self._clients: LoopClients[A2AClient] = LoopClients(make)

    @classmethod
    async def fetch(cls, url: str, **options: Any) -> Self:
        """Fetch the agent's card for its name and description. Takes the constructor's options."""
        from ...runtime.a2a import A2AClient  # noqa: PLC0415 -- as above

        asked = {
            name: options[name]
            for name in ("handler_path", "auth", "http_client", "transport", "limits")
            if name in options
        }
        async with A2AClient(url, **asked) as client:
            card = await client.card()
        own = {
            "name": _one_line(card.name, _LONGEST_NAME),
            "description": _one_line(card.description, _LONGEST_DESCRIPTION),
        }
        return cls(url, **{**own, **options})

    async def client(self) -> A2AClient:
        """Return the client of the running event loop. It is closed when the loop ends."""
        return await self._clients.get()

    async def aclose(self) -> None:
        """Close the connections of the running event loop. The agent may be used again."""
        await self._clients.aclose()

    def run(self, input: AgentInput, context: AgentContext) -> AsyncIterator[AgentEvent]:  # noqa: A002 -- the documented name
        from .remote_run import RemoteRun  # noqa: PLC0415 -- as above

        return RemoteRun(self, input, context).events()


def _one_line(text: str, longest: int) -> str:
    """Return untrusted text as one line for names and prompts."""
    return " ".join(
        "".join(letter if letter.isprintable() else " " for letter in text[: 4 * longest]).split()
    )[:longest].strip()


def _name_of(url: str) -> str:
    parts = urlsplit(url)
    return re.sub(r"\W+", "_", f"{parts.netloc}{parts.path}").strip("_")[:_LONGEST_NAME] or "remote"
