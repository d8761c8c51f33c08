"""How a run is opened that has to do with a store: before anybody plays, it is found out from where it starts.

Owns: the order in which a turn of a session is waited for, a checkpoint is found, and the run is written down as begun. It must never start an agent.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from ..agent.invocation import walk
from ..agent.run_messages import LOST, CancelRun
from ..durability.answers import Answers
from ..durability.persistence import RunPersistence
from ..sessions.turn import Turn

if TYPE_CHECKING:
    from ..actor.host import Host
    from .event_log import EventLog

__all__ = ["Beginning", "Resuming"]


class Beginning:
    """Of a new run: its turn has come, and where each step is kept, so is that it has begun."""

    __slots__ = ()

    async def __call__(self, event_log: EventLog, system: Host, stop: Callable[[CancelRun], object]) -> None:
        if event_log.record.turn is not None:
            await event_log.record.turn.begin(event_log.state, system, stop)
        persistence = event_log.persistence
        if persistence is not None and persistence.journal is not None:
            await persistence.begin(event_log.state, system, partial(stop, LOST))


class Resuming:
    """Of a run that comes from a store."""

    __slots__ = ("_answers", "_image", "_persistence")

    def __init__(self, persistence: RunPersistence, answers: Answers | None, image: dict[str, Any] | None = None) -> None:
        self._persistence = persistence
        self._answers = answers  # None: it was not interrupted
        self._image = image  # from which it continues, if that is known already

    async def __call__(self, event_log: EventLog, system: Host, stop: Callable[[CancelRun], object]) -> None:
        persistence, answers = self._persistence, self._answers
        asked = event_log.context.session.to_dict()
        image, self._image = self._image, None
        if image is None:
            image = await persistence.load(system, partial(stop, LOST))
        else:
            persistence.when_lost(partial(stop, LOST))
        persistence.restore(image, event_log.state)
        state, record = event_log.state, event_log.record
        record.said_before = state.lane.entries[-1].message if state.lane.entries else None
        record.last_seq = state.seq
        if answers is not None:
            answers.give(() if event_log.state.root is None else walk(event_log.state.root), persistence.checkpoint_id)
        session_id = event_log.context.session_id
        if event_log.state.new_input_count is not None and session_id is not None:
            event_log.record.turn = turn = Turn(persistence.access, session_id, "queue", None)
            event_log.record.when_finished(turn.abandon)
            await turn.go_on(state, system, stop)
            event_log.context.session.update(asked)
        await persistence.go_on(state)
