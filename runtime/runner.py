"""The front door: a definition, ready to be run any number of times at once.

Owns: the tree of a definition, checked when the Runner is made, and the choice of where a run lives. It keeps nothing of a run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal

from .chat import Message, new_id
from .definition import AgentInput, build_tree
from .directory import current_system
from .errors import UsageError
from .hooks import RunHooks, check_hooks
from .options import OptionsLike, as_options
from .run import Run
from .run_context import RunContext
from .run_record import RunRecord
from .run_supervisor import RunSupervisor
from .session import SessionValues
from .system import ActorSystem

if TYPE_CHECKING:
    from .ref import ActorRef

__all__ = ["Runner", "as_messages"]

_DURABILITIES: Final = ("none", "interrupt", "step")


class Runner:
    """Runs an agent, with all that are under it.

        runner = Runner(agent)
        async for event in runner.query("What is the weather in Paris?"): ...
        result = runner.query("And in Rome?").result()       # where no event loop is running

    Without `system`, its runs have a system of their own on the loop where they start; nothing of it is left when they have ended.
    """

    def __init__(
        self,
        agent: Any,
        *,
        system: ActorSystem | None = None,
        store: Any = None,
        streaming: bool = False,
        durability: Literal["none", "interrupt", "step"] = "interrupt",
        max_transfers: int = 100,
        hooks: RunHooks | None = None,
        event_buffer: int = 1024,
        skip_transfer_messages: bool = False,
    ) -> None:
        if system is not None and not isinstance(system, ActorSystem):
            msg = f"Runner(system={system!r}): give an ActorSystem that has been entered, or leave it out."
            raise UsageError(msg)
        if durability not in _DURABILITIES:
            msg = f"Runner(durability={durability!r}): give 'none', 'interrupt' or 'step'."
            raise UsageError(msg)
        if event_buffer < 1:
            msg = f"Runner(event_buffer={event_buffer}): a run needs room for one event at least."
            raise UsageError(msg)
        if max_transfers < 0:
            msg = f"Runner(max_transfers={max_transfers}): give 0 or more."
            raise UsageError(msg)
        if store is not None:
            raise UsageError("Runner(store=...): checkpoints cannot be stored yet.")
        check_hooks(hooks, RunHooks, "Runner")
        self.agent = agent
        self.system = system
        self.streaming = streaming
        self.durability = durability
        self.max_transfers = max_transfers
        self.hooks = hooks
        self.event_buffer = event_buffer
        self.skip_transfer_messages = skip_transfer_messages
        self._tree = build_tree(agent)
        for node in self._tree.walk():
            check = getattr(node.agent, "check", None)
            if check is not None:
                check(node)
        self._systems: dict[asyncio.AbstractEventLoop, ActorSystem] = {}  # of the loops that are not closed, as far as is known

    def __repr__(self) -> str:
        return f"<Runner of {self._tree.name!r}>"

    def query(self, text: str, **options: Any) -> Run:
        """Run with one user message. The options are those of `run`."""
        if not isinstance(text, str):
            msg = f"query({text!r}): give a text; messages go to run([...])."
            raise UsageError(msg)
        return self.run((Message("user", text),), **options)

    def run(
        self,
        messages: str | Message | Sequence[Message],
        *,
        checkpoint_id: str | None = None,
        session_id: str | None = None,
        session_values: Mapping[str, Any] | None = None,
        options: OptionsLike = None,
        streaming: bool | None = None,
        timeout: float | None = None,
    ) -> Run:
        """Run with these messages. It starts now, if an event loop is running here, and else at its first use."""
        if timeout is not None and not timeout > 0:
            msg = f"run(timeout={timeout}): give a number of seconds above 0, or None for no limit."
            raise UsageError(msg)
        given = AgentInput(as_messages(messages), self.streaming if streaming is None else streaming)
        run_id = new_id()
        context = RunContext(run_id, session_id, SessionValues(session_values), as_options(options), self.hooks)
        context.skip_transfers = self.skip_transfer_messages
        record = RunRecord(context, self._tree.name, self.event_buffer)
        run = Run(run_id, record, self._place, partial(self._launch, context, record, given, timeout), checkpoint_id)
        if _running_loop() is not None:
            run.start()
        return run

    # --- where ---

    def _place(self) -> ActorSystem:
        """The system in which a run lives that is started here."""
        if self.system is not None:
            return self.system
        loop = _running_loop()
        if loop is not None:
            return self._own_system(loop)
        default = current_system()  # in its own thread, because no loop is running in this one
        future = asyncio.run_coroutine_threadsafe(self._own_system_there(), default.loop)
        return future.result()

    async def _own_system_there(self) -> ActorSystem:
        return self._own_system(asyncio.get_running_loop())

    def _own_system(self, loop: asyncio.AbstractEventLoop) -> ActorSystem:
        system = self._systems.get(loop)
        if system is None:
            for known in [known for known in tuple(self._systems) if known.is_closed()]:
                self._systems.pop(known, None)
            system = self._systems[loop] = ActorSystem(f"runner-of-{self._tree.name}")
            system.bind(loop)
        return system

    def _launch(self, context: RunContext, record: RunRecord, given: AgentInput, timeout: float | None, system: ActorSystem) -> ActorRef[RunSupervisor]:
        """Start the run, on the system's loop."""
        if system is not self.system:
            record.when_finished(partial(_release, system))
        return system.spawn_own(RunSupervisor, (self._tree, context, record, given, self.max_transfers, timeout), None, None)


def _release(system: ActorSystem) -> None:
    """A run of a system of its own has ended: leave no thread behind, if it was the last."""
    if not system.roots:
        system.workers.release()


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def as_messages(given: str | Message | Sequence[Message]) -> tuple[Message, ...]:
    """What was given as messages, as a tuple of them."""
    if type(given) is tuple and len(given) == 1 and type(given[0]) is Message:
        return given
    if isinstance(given, str):
        return (Message("user", given),)
    if isinstance(given, Message):
        return (given,)
    messages = tuple(given) if isinstance(given, Iterable) else (given,)
    for message in messages:
        if not isinstance(message, Message):
            msg = f"messages: {message!r} is no Message. Write Message.user('...'), or give a plain text."
            raise UsageError(msg)
    return messages
