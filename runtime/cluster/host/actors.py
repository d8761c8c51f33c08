"""The actors of a host that were spawned remotely.

They are found by their ids. Actors identified by a key are stopped when they have been idle for
long. Actors live in memory: they are lost with the host. Only classes that the cluster allows are
loaded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ...actor.actor import Actor
from ...codec.packing import pack
from ...data.chat import new_id
from ...errors import ActorDeadError, UsageError
from ..names import load_allowed

if TYPE_CHECKING:
    import asyncio

    from ...actor.ref import ActorRef
    from ...system.system import ActorSystem

__all__ = ["HostActors"]


class _Keyed:
    """An actor identified by a key, which is stopped when it has been idle for a while."""

    __slots__ = ("arguments", "idle", "name", "timer", "used")

    def __init__(self, name: str, arguments: bytes, idle: float) -> None:
        self.name = name
        self.arguments = arguments
        self.idle = idle
        self.used = 0.0
        self.timer: asyncio.TimerHandle | None = None


class HostActors:
    """The actors of one incarnation of a host."""

    def __init__(self, system: ActorSystem, allow: Sequence[str]) -> None:
        self._system = system
        self._allow = allow
        self._refs: dict[str, ActorRef[Any]] = {}
        self._keyed: dict[tuple[str, str], _Keyed] = {}

    def __len__(self) -> int:
        return len(self._refs)

    def spawn(self, class_name: str, args: Sequence[Any], kwargs: dict[str, Any]) -> str:
        """Spawn an actor of that class. Return its id."""
        actor_class = load_allowed(class_name, self._allow, "spawn")
        if not isinstance(actor_class, type) or not issubclass(actor_class, Actor):
            msg = (
                f"spawn({class_name!r}): the name must be that of an actor class, got a "
                f"{type(actor_class).__name__}. Pass the name of a subclass of "
                "offbook.runtime.Actor."
            )
            raise UsageError(msg)
        ref = self._system.spawn(actor_class, *args, **kwargs)
        actor_id = new_id()
        self._refs[actor_id] = ref
        self._system.spawn_own(_Watch, (ref, lambda: self._refs.pop(actor_id, None)), None, None)
        return actor_id

    def has(self, actor_id: str) -> bool:
        return actor_id in self._refs

    def find(self, actor_id: str) -> ActorRef[Any]:
        ref = self._refs.get(actor_id)
        if ref is None:
            msg = f"actor {actor_id} has stopped. Spawn another one."
            raise ActorDeadError(msg)
        return ref

    def keyed(
        self, class_name: str, key: str, args: Sequence[Any], kwargs: dict[str, Any], idle: float
    ) -> ActorRef[Any]:
        """Return the actor of that class that the key identifies; spawn it if it is not here.

        Raises `UsageError` if it was spawned with other arguments.
        """
        arguments = pack([list(args), sorted(kwargs.items())])
        keyed = self._keyed.get((class_name, key))
        if keyed is None or keyed.name not in self._refs:
            if keyed is not None and keyed.timer is not None:
                keyed.timer.cancel()
            actor_id = self.spawn(class_name, args, kwargs)
            keyed = self._keyed[class_name, key] = _Keyed(actor_id, arguments, idle)
        elif keyed.arguments != arguments:
            msg = (
                f"actor({class_name!r}, key={key!r}): the arguments must be those that the actor "
                "of this key was spawned with, and they differ. Pass the same ones, or another key."
            )
            raise UsageError(msg)
        keyed.used = self._system.loop.time()
        if keyed.timer is None:
            keyed.timer = self._system.loop.call_later(keyed.idle, self._look, class_name, key)
        return self._refs[keyed.name]

    def _look(self, class_name: str, key: str) -> None:
        """Stop the actor if it has been idle for its idle time."""
        keyed = self._keyed[class_name, key]
        left = keyed.used + keyed.idle - self._system.loop.time()
        ref = self._refs.get(keyed.name)
        if ref is not None and left > 0:
            keyed.timer = self._system.loop.call_later(left, self._look, class_name, key)
            return
        del self._keyed[class_name, key]
        if ref is not None:
            ref.stop(block=False, drain=True)

    def close(self) -> None:
        for keyed in self._keyed.values():
            if keyed.timer is not None:
                keyed.timer.cancel()
        self._keyed.clear()


class _Watch(Actor):
    """Notices when an actor has ended."""

    def __init__(self, ref: ActorRef[Any], ended: Callable[[], object]) -> None:
        super().__init__()
        self._ref = ref
        self._ended = ended

    def on_start(self) -> None:
        self.watch(self._ref)

    def on_receive(self, _message: object) -> None:
        self._ended()
        self.stop()
