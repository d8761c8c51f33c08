"""How a run is opened that has to do with a store: before anybody plays, it is found out from where it starts.

Owns: the order in which a turn of a session is waited for, a checkpoint is found, and the run is written down as begun. It must never start an agent.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from ..agent.invocation import walk
from ..agent.run_messages import LOST, CancelRun
from ..durability.answers import Answers
from ..durability.persistence import Keeping
from ..sessions.turn import Turn

if TYPE_CHECKING:
    from ..actor.host import Host
    from .event_log import Ledger

__all__ = ["Beginning", "Resuming"]


class Beginning:
    """Of a new run: its turn has come, and where each step is kept, so is that it has begun."""

    __slots__ = ()

    async def __call__(self, ledger: Ledger, system: Host, stop: Callable[[CancelRun], object]) -> None:
        if ledger.record.turn is not None:
            await ledger.record.turn.begin(ledger.state, system, stop)
        keeping = ledger.keeping
        if keeping is not None and keeping.journal is not None:
            await keeping.begin(ledger.state, system, partial(stop, LOST))


class Resuming:
    """Of a run that comes from a store."""

    __slots__ = ("_answers", "_keeping")

    def __init__(self, keeping: Keeping, answers: Answers | None) -> None:
        self._keeping = keeping
        self._answers = answers  # None: it was not interrupted

    async def __call__(self, ledger: Ledger, system: Host, stop: Callable[[CancelRun], object]) -> None:
        keeping, answers = self._keeping, self._answers
        asked = ledger.context.session.to_dict()
        if answers is not None:
            await keeping.load(system, partial(stop, LOST))
        else:
            keeping.when_lost(partial(stop, LOST))
        keeping.restore(ledger.state)
        state, record = ledger.state, ledger.record
        record.said_before = state.lane.entries[-1].message if state.lane.entries else None
        record.last_seq = state.seq
        if answers is not None:
            answers.give(() if ledger.state.root is None else walk(ledger.state.root), keeping.checkpoint_id)
        session_id = ledger.context.session_id
        if ledger.state.new_input_count is not None and session_id is not None:
            ledger.record.turn = turn = Turn(keeping.vault, session_id, "queue", None)
            ledger.record.when_finished(turn.abandon)
            await turn.go_on(state, system, stop)
            ledger.context.session.update(asked)
        await keeping.go_on(state)
