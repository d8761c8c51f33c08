"""The handlers of the clients' requests, by kind.

A client that asks the wrong host gets a reply with the code `moved`. Handlers never wait; slow work
runs in a task of the host.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final

from ...codec.packing import pack, unpack
from ...errors import UsageError
from .clients import ELSEWHERE

if TYPE_CHECKING:
    from ..link_order import Request
    from .clients import ClientPort
    from .host import ClusterHost

__all__ = ["LOST", "MOVED", "Requests"]

MOVED: Final = "moved"
"""The code of a reply: the key belongs to another host, by the newer list in the reply."""

LOST: Final = "lost"
"""The code of a reply: the requested object was in another incarnation of this host."""

_PLACED: Final = frozenset(("run", "resume", "retry", "follow", "keyed", "clear"))


class Requests:
    """The requests of one incarnation of a host."""

    def __init__(self, host: ClusterHost) -> None:
        self._host = host
        self._now: dict[str, Callable[[ClientPort, Request], object]] = {
            "run": host.runs.ask,
            "resume": host.runs.ask,
            "follow": host.runs.ask,
            "mode": self._mode,
            "cancel": self._cancel,
            "spawn": self._spawn,
            "tell": self._tell,
            "bye": lambda port, _request: host.clients.leave(port.name),
        }
        self._later: dict[str, Callable[[Any], Awaitable[object]]] = {
            "ask": self._ask,
            "send": self._send,
            "stop": self._stop,
            "wait": self._wait,
            "alive": self._alive,
            "keyed": self._keyed,
            "history": lambda said: host.runs.in_session(said[0], "history"),
            "values": lambda said: host.runs.in_session(said[0], "values"),
            "clear": lambda said: host.runs.in_session(said[0], "clear"),
            "retry": self._retry,
            "list": self._list,
            "recover": self._recover,
        }

    def handle(self, port: ClientPort, request: Request) -> None:
        """Handle a request, or start a task for it. Any error is returned to the caller."""
        host, kind, head = self._host, request.kind, request.head
        if head.get("life", host.incarnation) != host.incarnation:
            port.answer(request.id, LOST)
        elif (kind in _PLACED and not host.is_open) or (
            kind in _PLACED and not head.get("any") and self._belongs_elsewhere(head)
        ):
            port.answer(request.id, MOVED, pack(host.hosts.current.data()))
        elif (now := self._now.get(kind)) is not None:
            try:
                now(port, request)
            except Exception as error:  # noqa: BLE001 -- returned to the caller
                port.answer_error(request.id, error)
        elif kind in self._later:
            host.spawn_task(self._answer(port, request), f"{kind} for client {port.name}")
        else:
            msg = (
                f"this host does not know the request {kind!r}, because its version of offbook "
                "is older than its client's. Update the hosts: call roll()."
            )
            port.answer_error(request.id, UsageError(msg))

    def _belongs_elsewhere(self, head: dict[str, Any]) -> bool:
        """Return whether the key belongs to another host by a list newer than the client's."""
        hosts = self._host.hosts.current
        return (
            int(head.get("list", 0)) < hosts.number
            and hosts.placement.first(head.get("key", "")) != self._host.name
        )

    async def _answer(self, port: ClientPort, request: Request) -> None:
        try:
            port.answer_value(request.id, await self._later[request.kind](unpack(request.body)))
        except Exception as error:  # noqa: BLE001 -- returned to the caller
            port.answer_error(request.id, error)

    # --- runs ---

    def _mode(self, port: ClientPort, request: Request) -> None:
        play = self._host.runs.find(port.name, request.head["of"])
        if play is not None and request.head["mode"] == "drop":
            play.drop()
        elif play is not None:
            play.decide(request.head["mode"])
        port.answer(request.id, "ok", pack(None))

    def _cancel(self, port: ClientPort, request: Request) -> None:
        play = self._host.runs.find(port.name, request.head["of"])
        if play is not None:
            play.cancel(request.head["mode"], request.head.get("timeout"))
        port.answer(request.id, "ok", pack(None))

    # --- actors ---

    def _spawn(self, port: ClientPort, request: Request) -> None:
        if not self._host.is_open:
            port.answer(request.id, ELSEWHERE)
            return
        class_name, args, kwargs = unpack(request.body)
        port.answer_value(
            request.id,
            [
                self._host.actors.spawn(class_name, args, kwargs),
                self._host.incarnation,
                self._host.name,
            ],
        )

    def _tell(self, port: ClientPort, request: Request) -> None:
        actor_id, message = unpack(request.body)
        self._host.actors.find(actor_id).tell(message)
        port.answer(request.id, "ok", pack(None))

    async def _ask(self, said: Any) -> object:
        actor_id, message, timeout = said
        return await self._host.actors.find(actor_id).request(message, timeout=timeout)

    async def _send(self, said: Any) -> object:
        actor_id, message = said
        await self._host.actors.find(actor_id).send(message)
        return None

    async def _stop(self, said: Any) -> object:
        actor_id, drain = said
        return await self._host.actors.find(actor_id).stop(block=False, drain=drain)

    async def _wait(self, said: Any) -> object:
        (actor_id,) = said
        if self._host.actors.has(actor_id):
            await self._host.actors.find(actor_id).wait_stopped()
        return None

    async def _alive(self, said: Any) -> object:
        (actor_id,) = said
        return self._host.actors.has(actor_id) and self._host.actors.find(actor_id).is_alive()

    async def _keyed(self, said: Any) -> object:
        class_name, key, args, kwargs, idle, (how, message, timeout) = said
        ref = self._host.actors.keyed(class_name, key, args, kwargs, idle)
        if how == "ask":
            return await ref.request(message, timeout=timeout)
        await ref.send(message)
        return None

    # --- the cluster ---

    async def _retry(self, said: Any) -> object:
        (run_id,) = said
        await self._host.takeover.retry(run_id)
        return None

    async def _list(self, _said: Any) -> object:
        return (await self._host.hosts.read()).data()

    async def _recover(self, said: Any) -> object:
        """Recover runs, because another host was drained, or has found the runs of a lost one."""
        del said
        await self._host.hosts.read()
        await self._host.takeover.recover()
        return None
