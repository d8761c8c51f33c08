"""Who may write, as a machine with few states: two processes, one run, one store; all that can
happen, in every order in which it can.

The run begins, makes a call and asks (`a`), is answered, makes a second call (`b`), and ends. A
process may stand still between any two of its actions, for as long as one likes, or crash; what it
has sent to the store arrives whenever it does, or twice, or never. `explore` goes through all of
it, and checks each step; `MUTANTS` are mistakes, each of which breaks a promise.

Owns: the protocol, and what has to hold of it. `test_g13_ownership_model.py` drives real stores
through it.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import NamedTuple

STEPS = ("begun", "a", "answer", "b")
LIVES = 2
"""How often a process may begin under a new name."""


class Store(NamedTuple):
    """What is in the store."""

    owners: tuple[str, ...] = ("",) * (2 * LIVES)
    """Each is "" before it is made, "alive", "over", or "revoked"."""
    # Owner and epoch; the owner is -1 when it was left for others.
    claim: tuple[int, int] | None = None
    epoch: int = 0
    clock: int = 0  # of its server: as large as every epoch that was given before the last failover
    journal: tuple[tuple[str, int], ...] = ()  # steps, and the epochs under which they were written
    # Its row: "", "open" (a process has to continue it), "waits" (for an answer) or "ended".
    row: str = ""
    answers: int = 0
    begun: int = 0

    @property
    def ended(self):
        return self.row == "ended"


class Message(NamedTuple):
    """What a process has asked the store for."""

    # "begin", "take", "step", "answer", "last" (a step, and the end with it), "end", "verify" or
    # "leave".
    kind: str
    process: int
    owner: int
    epoch: int = 0
    position: int = 0


class Process(NamedTuple):
    """What a process knows."""

    life: int = 0
    phase: str = "out"
    """"out", "in" (an owner), "waits" (for an answer of the store), "has" (the run), "knows" (how
    far it is), "looked" (and may call), "called".
    """
    epoch: int = 0
    position: int = 0
    # Whether its time was not over since it asked for the run, or asked whether it has it still.
    sure: bool = False


class State(NamedTuple):
    """Everything."""

    store: Store = Store()
    processes: tuple[Process, Process] = (Process(), Process())
    flying: tuple[Message, ...] = ()
    keys: tuple[tuple[int, ...], ...] = ((), ())  # under which each of the two calls was made
    highest: int = 0  # of all epochs that were ever given
    crashes: int = 0
    lapses: int = 0
    echoes: int = 0
    # As far as the store has come to it; None: it was not looked at yet.
    replica: Store | None = None
    failovers: int = 0


class Action(NamedTuple):
    """One thing that happens, and what the store answers to it, if it is asked."""

    name: str
    who: object
    answer: object = None


class Broken(AssertionError):
    """A promise was broken."""


@dataclass(frozen=True)
class Model:
    """The protocol, with so many crashes, times that are over before they are prolonged, writes
    that arrive twice, and failovers that lose the last writes.

    `mistake` is what is wrong with it.
    """

    crashes: int = 1
    lapses: int = 1
    echoes: int = 0
    failovers: int = 0
    mistake: str = ""

    # --- the store: the table that each backend implements ---

    def alive(self, store, owner):
        return owner >= 0 and store.owners[owner] == "alive"

    def arrive(self, store, message):
        """A message arrives. Returns the store afterwards, and its answer."""
        if message.kind in ("begin", "take"):
            return self._claim(store, message)
        refused = self._refusal(store, message)
        if refused and message.kind in ("end", "last") and self.mistake == "no fence for the row":
            return store._replace(row="ended"), refused
        if refused:
            return store, refused
        if message.kind == "verify":
            return store, "done"
        if message.kind == "leave":
            return store._replace(claim=(-1, store.claim[1])), "done"
        if message.kind == "end":
            return store._replace(row="ended", claim=None), "done"
        journal = (*store.journal, (STEPS[message.position], message.epoch))
        if message.kind == "last":
            return store._replace(journal=journal, row="ended", claim=None), "done"
        if message.kind == "answer":
            row = store.row if self.mistake == "an answer leaves the row" else "open"
            return store._replace(journal=journal, answers=store.answers + 1, row=row), "done"
        if message.position == 1:  # it asks: whoever answers takes it anew
            row = store.row if self.mistake == "a question leaves the row" else "waits"
            return store._replace(journal=journal, row=row, claim=None), "done"
        return store._replace(journal=journal), "done"

    def _claim(self, store, message):
        if (
            store.claim is not None
            and store.claim[0] != message.owner
            and self.alive(store, store.claim[0])
        ):
            return store, None
        if not self.alive(store, message.owner) and self.mistake != "no owner check":
            return store, "owner"
        if (
            message.kind == "begin"
            and self.mistake != "no value check"
            and (store.row or store.journal)
        ):
            return store, "value"
        last = (
            store.epoch if self.mistake == "no clock in epochs" else max(store.epoch, store.clock)
        )
        epoch = 1 + (
            last if self.mistake != "epochs again" else 0 if store.claim is None else store.claim[1]
        )
        store = store._replace(claim=(message.owner, epoch), epoch=max(epoch, store.epoch))
        if message.kind == "begin":
            store = store._replace(
                journal=(*store.journal, (STEPS[0], epoch)), row="open", begun=store.begun + 1
            )
        return store, epoch

    def _refusal(self, store, message):
        if store.claim != (message.owner, message.epoch) and (
            self.mistake != "no epoch check" or store.claim is None
        ):
            return "epoch"
        if not self.alive(store, message.owner) and self.mistake != "no owner check":
            return "owner"
        if (
            message.kind in ("step", "answer", "last", "end")
            and len(store.journal) != message.position
            and self.mistake != "no position check"
        ):
            return "position"
        if message.kind == "answer" and store.answers and self.mistake != "no value check":
            return "value"
        return None

    # --- all that can happen next ---

    def next(self, state):
        """Each action that is possible, and the state afterwards."""
        for index, process in enumerate(state.processes):
            yield from self._of_process(state, index, process)
        store = state.store
        for owner, known in enumerate(store.owners):
            if known == "alive" and state.lapses < self.lapses:
                yield Action("time is over", owner), self._over(state, owner)
            if known in ("alive", "over") and owner % LIVES < state.processes[owner // LIVES].life:
                yield (
                    Action("revoke", owner),
                    state._replace(
                        store=store._replace(owners=_put(store.owners, owner, "revoked"))
                    ),
                )
        if state.failovers < self.failovers:
            yield from self._of_replica(state)
        for message in dict.fromkeys(state.flying):
            yield self._arrives(state, message)
            if state.echoes < self.echoes:
                yield (
                    Action("is sent twice", message),
                    state._replace(
                        flying=tuple(sorted((*state.flying, message))), echoes=state.echoes + 1
                    ),
                )

    def _over(self, state, owner):
        """The time of an owner is over.

        Its process finds out by its own clock, before it looks the next time.
        """
        index, process = owner // LIVES, state.processes[owner // LIVES]
        state = state._replace(
            store=state.store._replace(owners=_put(state.store.owners, owner, "over")),
            lapses=state.lapses + 1,
        )
        return (
            _with(state, index, process._replace(sure=False))
            if owner % LIVES == process.life
            else state
        )

    def _of_replica(self, state):
        """A replica that is behind takes over.

        That takes longer than an answer of the store is good for: each process asks again before
        its next call.
        """
        if state.replica is None:
            yield Action("falls behind", "replica"), state._replace(replica=state.store)
        elif state.replica != state.store:
            processes = tuple(process._replace(sure=False) for process in state.processes)
            store = state.replica._replace(clock=state.highest)
            yield (
                Action("fails over", "replica"),
                state._replace(
                    store=store, processes=processes, replica=None, failovers=state.failovers + 1
                ),
            )

    def _of_process(self, state, index, process):
        store, owner = state.store, index * LIVES + process.life
        if process.life >= LIVES:
            return
        if process.phase == "out":
            yield (
                Action("enter", owner),
                _with(state, index, process._replace(phase="in"), _owner(store, owner, "alive")),
            )
            return
        if state.crashes < self.crashes:
            yield (
                Action("crash", index),
                _with(state, index, Process(process.life + 1))._replace(crashes=state.crashes + 1),
            )
        if store.owners[owner] == "over":
            yield (
                Action("keep alive", owner),
                _with(state, index, process, _owner(store, owner, "alive")),
            )
        kind = self._wants(store, process)
        if kind == "look":
            yield from self._look(state, index, process, owner)
        elif process.phase == "looked":
            yield Action("call", index), self._call(state, index, process)
        elif process.phase == "has":
            position = len(store.journal)
            yield (
                Action("read", index),
                _with(state, index, process._replace(phase="knows", position=position)),
            )
        elif kind:
            sure = process.sure or kind in ("begin", "take")
            for one in (
                (kind, "last") if kind == "step" and process.position == len(STEPS) - 1 else (kind,)
            ):
                message = Message(one, index, owner, process.epoch, process.position)
                yield (
                    Action("send", message),
                    _fly(_with(state, index, process._replace(phase="waits", sure=sure)), message),
                )

    def _wants(self, store, process):
        """What a process does next of its own accord."""
        if process.phase == "in":
            if not store.journal and not store.row:
                return "begin"
            return None if store.ended else "take"
        if process.phase == "called":
            return "step"
        if process.phase == "knows":
            if store.ended or not process.position:
                return "leave"  # without a beginning, a failover has lost it
            return {1: "look", 2: "answer", 3: "look"}.get(process.position, "end")
        return None

    def _look(self, state, index, process, owner):
        """Before a call: its time is not over, and was not since it has the run.

        If it was, the store is asked first.
        """
        sure = self.alive(state.store, owner) and (
            process.sure or self.mistake == "a time that was over is forgotten"
        )
        if sure or self.mistake == "time is not looked at":
            if state.store.claim != (owner, process.epoch):
                msg = f"a stale owner lets a call begin: {process} of {state.store}"
                raise Broken(msg)
            yield Action("look", index), _with(state, index, process._replace(phase="looked"))
        elif self.alive(state.store, owner):
            yield (
                Action(
                    "send",
                    message := Message("verify", index, owner, process.epoch, process.position),
                ),
                _fly(_with(state, index, process._replace(phase="waits", sure=True)), message),
            )

    def _call(self, state, index, process):
        """The call begins: from here on it may have happened."""
        which = 0 if process.position == 1 else 1
        key = process.epoch if self.mistake == "keys by owners" else process.position
        keys = tuple(sorted({*state.keys[which], key}))
        if len(keys) > 1:
            msg = f"one call has two keys: {state}"
            raise Broken(msg)
        return _with(state, index, process._replace(phase="called"))._replace(
            keys=_put(state.keys, which, keys)
        )

    def _arrives(self, state, message):
        store, answer = self.arrive(state.store, message)
        self._check(state, message, store, answer)
        flying = list(state.flying)
        flying.remove(message)
        state = state._replace(
            store=store, flying=tuple(flying), highest=max(state.highest, store.epoch)
        )
        process = state.processes[message.process]
        if (
            process.phase == "waits"
            and message.owner == message.process * LIVES + process.life
            and message not in flying
        ):
            state = _with(state, message.process, self._heard(process, message, answer))
        return Action("arrives", message, answer), state

    def _heard(self, process, message, answer):
        """What the process makes of the answer of the store."""
        if answer == "owner":
            return Process(process.life + 1)  # it goes on under another name
        if message.kind in ("begin", "take"):
            return (
                process._replace(phase="has", epoch=answer)
                if isinstance(answer, int)
                else Process(process.life, "in")
            )
        if (
            answer != "done"
            or message.kind in ("last", "end", "leave")
            or (message.kind == "step" and message.position == 1)
        ):
            return Process(process.life, "in")
        if message.kind == "verify":
            return process._replace(phase="knows")
        return process._replace(phase="knows", position=message.position + 1)

    # --- what has to hold ---

    def _check(self, state, message, store, answer):
        before = state.store
        if store == before:
            return
        if not self.alive(before, message.owner):
            raise Broken(f"an owner that is not alive has written: {message} to {before}")
        if message.kind in ("begin", "take"):
            if answer <= state.highest:
                raise Broken(f"epoch {answer} is given again: {message} to {before}")
        elif message.epoch != before.epoch or before.claim != (message.owner, message.epoch):
            raise Broken(f"two owners write: {message} to {before}")
        if tuple(step for step, _ in store.journal) != STEPS[: len(store.journal)]:
            raise Broken(f"a step is recorded twice, or in another order: {message} to {before}")
        if sorted(store.journal, key=lambda record: record[1]) != list(store.journal):
            raise Broken(f"an earlier owner writes behind a later one: {message} to {before}")
        if store.answers > 1 or store.begun > 1:
            raise Broken(f"an answer counts twice, or the run begins twice: {message} to {before}")
        if store.ended and len(store.journal) < len(STEPS):
            raise Broken(f"a run has ended before its last step: {message} to {before}")
        if before.ended and (store.journal != before.journal or not store.ended):
            raise Broken(f"a run that has ended goes on: {message} to {before}")
        waits = len(store.journal) == 2  # it has asked, and was not answered
        if not store.ended and store.journal and (store.row == "waits") != waits:
            raise Broken(f"the row says something else than the journal: {message} to {before}")

    def explore(self, *, keep=True):
        """Go through all of it.

        Returns the states, the first one first, and if it is to `keep` that, what can happen in
        each. Raises `Broken`.
        """
        start = State()
        reached = {start: ()}
        line = deque([start])
        while line:
            state = line.popleft()
            following = tuple(self.next(state))
            if keep:
                reached[state] = following
            for _, after in following:
                if after not in reached:
                    reached[after] = ()
                    line.append(after)
        return reached


def hopeless(reached):
    """The states from which the run cannot come to its end any more, though a process is left that
    could bring it there.
    """
    before = {}
    for state, following in reached.items():
        for _, after in following:
            before.setdefault(after, []).append(state)
    line = deque(state for state in reached if state.store.ended)
    hopeful = set(line)
    while line:
        for state in before.get(line.popleft(), ()):
            if state not in hopeful:
                hopeful.add(state)
                line.append(state)
    return [
        state
        for state in reached
        if state not in hopeful and any(process.life < LIVES for process in state.processes)
    ]


MUTANTS = {
    "no epoch check": "stale owner|two owners",
    "no owner check": "not alive",
    "no position check": "recorded twice",
    "no value check": "recorded twice|counts twice|ended goes on",
    "epochs again": "given again",
    "no clock in epochs": "given again",
    "time is not looked at": "stale owner",
    "a time that was over is forgotten": "stale owner",
    "keys by owners": "two keys",
    "no fence for the row": "not alive|two owners|before its last step",
    "an answer leaves the row": "row says something else",
    "a question leaves the row": "row says something else",
}
"""Each mistake, and the promises that it breaks."""


def _put(values, index, value):
    return (*values[:index], value, *values[index + 1 :])


def _owner(store, owner, known):
    return store._replace(owners=_put(store.owners, owner, known))


def _with(state, index, process, store=None):
    return state._replace(
        processes=_put(state.processes, index, process),
        store=state.store if store is None else store,
    )


def _fly(state, message):
    return state._replace(flying=tuple(sorted((*state.flying, message))))
