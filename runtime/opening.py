"""How a run is opened that has to do with a store: before anybody plays, it is found out from where it starts.

Owns: the order in which a turn of a session is waited for, a checkpoint is found, and the run is written down as begun. It must never start an agent.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from .image import walk
from .keeping import Keeping
from .protocol import LOST, CancelRun
from .resuming import Answers
from .turn import Turn

if TYPE_CHECKING:
    from .ledger import Ledger
    from .system import ActorSystem

__all__ = ["Beginning", "Resuming"]


class Beginning:
    """Of a new run: its turn has come, and where each step is kept, so is that it has begun."""

    __slots__ = ()

    async def __call__(self, ledger: Ledger, system: ActorSystem, stop: Callable[[CancelRun], object]) -> None:
        if ledger.turn is not None:
            await ledger.turn.begin(ledger, system, stop)
        keeping = ledger.keeping
        if keeping is not None and keeping.journal is not None:
            await keeping.begin(ledger, system, partial(stop, LOST))


class Resuming:
    """Of a run that comes from a store."""

    __slots__ = ("_answers", "_keeping")

    def __init__(self, keeping: Keeping, answers: Answers | None) -> None:
        self._keeping = keeping
        self._answers = answers  # None: it was not interrupted

    async def __call__(self, ledger: Ledger, system: ActorSystem, stop: Callable[[CancelRun], object]) -> None:
        keeping, answers = self._keeping, self._answers
        asked = ledger.context.session.to_dict()
        if answers is not None:
            await keeping.load(system, partial(stop, LOST))
        else:
            keeping.when_lost(partial(stop, LOST))
        keeping.restore(ledger)
        if answers is not None:
            answers.give(() if ledger.root is None else walk(ledger.root), keeping.checkpoint_id)
        session_id = ledger.context.session_id
        if ledger.fresh is not None and session_id is not None:
            ledger.turn = turn = Turn(keeping.vault, session_id, "queue", None)
            ledger.record.when_finished(turn.abandon)
            await turn.go_on(ledger, system, stop)
            ledger.context.session.update(asked)
        await keeping.go_on(ledger)
