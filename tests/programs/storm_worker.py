"""A process of a storm: it asks for runs and turns of sessions, answers what they ask, and recovers
what others have left. It is killed and stopped at random.

storm_worker.py '["SQLiteStore", ["a.db"], {}]' FOLDER NAME SEED            asks for as long as it
lives
storm_worker.py '["SQLiteStore", ["a.db"], {}]' FOLDER NAME SEED troubled   the same, and it prunes,
writes large values, forks, and has no room when
                                                                            there is a file
                                                                            FOLDER/full
storm_worker.py '["SQLiteStore", ["a.db"], {}]' FOLDER NAME SEED end        sees the runs of
FOLDER/tags to their ends, writes down what FOLDER/sessions
                                                                            hold, and ends

What happens is written to FOLDER/NAME.jsonl, which no store knows of, as lines: {"t": the clock of
the machine, "what": ...}. What each run does follows from its tag and the seed alone, so that
whoever asks for it asks for the same.
"""

import asyncio
import contextlib
import json
import os
import random
import re
import resource
import signal
import sys
import threading
import time
import traceback
from datetime import timedelta
from hashlib import sha256
from pathlib import Path

from offbook import runtime
from offbook.actors import ChatModelAgent, ToolContext, tool
from offbook.runtime import (
    ActorSystem,
    CheckpointError,
    Message,
    OffbookError,
    RunHooks,
    Runner,
    ToolCall,
    UsageError,
    ValueRefused,
)
from offbook.runtime.durability.lease import Lease
from offbook.runtime.stores import RunQuery
from offbook.runtime.stores.store_thread import Worker as StoreWorker

LEASE_SECONDS = 2
KEPT_SECONDS = 86_400
"""How runs have ended is asked for when all is over.

Nobody is promised that it is kept for longer than this, and no storm lasts so long.
"""
SENDERS = 4
POSTERS = 2
LONGEST_ANSWER = {"SQLiteStore": 15, "RedisStore": 25, "PostgresStore": 37}
"""The documented times, and five seconds for a machine that is busy."""
LOOK_SECONDS = 0.2
LARGEST = 4 << 20
FORK_SECONDS = 60
SESSIONS = ("s0", "s1", "s2", "s3")
POSTED_TO = ("p0", "p1", "p2")
LIVES_OF_A_SESSION = 60
LOSSES = (
    "RunLost",
    "StoreError",
    "WriteRefused",
    "ResumeError",
    "SystemDraining",
    "UsageError",
    "CheckpointError",
    "CheckpointNotFound",
)
# By the fence: when its lease was last found to have time enough left; a call is as young as that.
looks = {}


def now():
    """The same clock in all processes. It does not stand still while one of them is stopped."""
    return time.monotonic()


class Log:
    """The file of one worker, whose incarnations all write to it."""

    def __init__(self, path):
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def __call__(self, what, **said):
        # From here on it is the kernel's.
        os.write(self._file, (json.dumps({"t": now(), "what": what, **said}) + "\n").encode())


def watch_leases():
    """Note when each look at a lease began that let something begin."""
    ask = Lease.is_sure

    def is_sure(self):
        began = now()
        sure = ask(self)
        if sure:
            looks[self.fence] = began
        return sure

    Lease.is_sure = is_sure


class Waits:
    """How long each caller of the store waits.

    Times in which this process does not run do not count: they are no longer than a look at them.
    """

    def __init__(self, log, longest):
        self._log = log
        self._longest = longest
        self._waiting = {}  # what each waits for, and for how long it has
        self._answered = 0.0  # the longest that an answer has taken
        self._is_over = threading.Event()
        do = StoreWorker.do

        async def timed(worker, operation):
            self._waiting[operation] = 0.0
            try:
                return await do(worker, operation)
            finally:
                self._answered = max(self._answered, self._waiting.pop(operation, 0.0))

        StoreWorker.do = timed
        threading.Thread(target=self._look, daemon=True).start()

    def _look(self):
        last = now()
        while not self._is_over.wait(LOOK_SECONDS):
            before, last = last, now()
            for operation, waited in list(self._waiting.items()):
                if operation.name == "prune" or operation not in self._waiting:
                    # It is done in steps, and what is written is removed as long as there is
                    # something.
                    continue
                waits = self._waiting[operation] = waited + min(last - before, 2 * LOOK_SECONDS)
                if waits > self._longest >= waited:
                    self._log(
                        "unanswered",
                        run=None,
                        operation=operation.name,
                        key=repr(operation.key),
                        waits=waits,
                    )

    def end(self):
        self._is_over.set()
        self._log("waited", longest=self._answered)


def fence_of(context):
    return 0 if context.lease is None else context.lease.fence


# --- what a run does ---


def plan(seed, tag):
    """The steps of a run: the tools that its model wants, one reply after the other."""
    if tag.startswith("post"):
        return [["look"]]  # so that a turn has a safe point
    dice = random.Random(f"{seed} {tag}")
    return [
        dice.choices(("look", "pay", "work", "sign"), (3, 4, 2, 1), k=dice.choice((1, 1, 2)))
        for _ in range(dice.randrange(1, 5))
    ]


def session_of(seed, tag):
    """In which session it is a turn, if it is one.

    After so many lives there are other ones: in an hour, a few would become so long that reading
    them takes seconds.
    """
    dice = random.Random(f"{seed} {tag} session")
    lives = re.search(r"^w\d+\.(\d+)\.", tag)
    era = 0 if lives is None else int(lives[1]) // LIVES_OF_A_SESSION
    return f"{dice.choice(SESSIONS)}.{era}" if dice.random() < 0.5 else None


class Planner:
    """A model that wants what the plan says.

    The ids of its calls are others each time that it is asked, as a real model's are.
    """

    def __init__(self, seed):
        self._seed = seed

    async def generate(self, request):
        await asyncio.sleep(0.02)
        said = 0
        for message in reversed(request.messages):
            if message.role == "user":
                tag = message.text
                break
            said += message.role == "assistant"
        steps = plan(self._seed, tag)
        if said >= len(steps):
            return Message.assistant(f"{tag} done")
        names = steps[said]
        calls = [
            ToolCall(os.urandom(6).hex(), name, json.dumps({"of": f"{tag} {said} {part}"}))
            for part, name in enumerate(names)
        ]
        return Message.assistant(f"{tag} {said}", tuple(calls))


def make_agent(log, seed):
    def begin(context, of):
        fence = fence_of(context.run)
        log(
            "start",
            run=context.run_id,
            call=f"{context.tool_name} {of}",
            id=context.call_id,
            key=context.idempotency_key,
            fence=fence,
            look=looks.get(fence),
        )

    def end(context, of):
        log(
            "end", run=context.run_id, call=f"{context.tool_name} {of}", key=context.idempotency_key
        )
        return f"{of} {context.tool_name}"

    @tool
    async def look(of: str, context: ToolContext) -> str:
        begin(context, of)
        return end(context, of)

    @tool
    async def pay(of: str, context: ToolContext) -> str:
        begin(context, of)
        await asyncio.sleep(random.uniform(0, 0.3))
        return end(context, of)

    @tool
    def work(of: str, context: ToolContext) -> str:
        begin(context, of)
        time.sleep(random.uniform(0, 0.05))
        return end(context, of)

    @tool(needs_approval=True)
    async def sign(of: str, context: ToolContext) -> str:
        begin(context, of)
        await asyncio.sleep(random.uniform(0, 0.1))
        return end(context, of)

    return ChatModelAgent(
        name="A", model=Planner(seed), tools=[look, pay, work, sign], max_iterations=50
    )


# --- what is written down of it ---


def content(event):
    """What an event says, short."""
    message = event.message
    said = (
        None
        if message is None
        else [
            message.role,
            message.text,
            [[call.id, call.name, call.arguments] for call in message.tool_calls],
            message.tool_call_id,
        ]
    )
    return sha256(
        repr(
            (event.agent_name, said, type(event.action).__name__, type(event.error).__name__)
        ).encode()
    ).hexdigest()[:16]


class Worker:
    """One incarnation."""

    def __init__(self, log, store, system, seed):
        self.log = log
        self.seed = seed
        self.runner = Runner(
            make_agent(log, seed),
            store=store,
            system=system,
            durability="step",
            hooks=Noting(self),
            keep=KEPT_SECONDS,
        )

    def show(self, event, fence):
        """An event that belongs to the run.

        What has no invocation was said to this consumer only: that the run is lost here, for
        example.
        """
        if event.invocation_id:
            message = event.message
            result_of = (
                message.tool_call_id if message is not None and message.role == "tool" else None
            )
            self.log(
                "shown",
                run=event.run_id,
                seq=event.seq,
                content=content(event),
                result_of=result_of,
                fence=fence,
                made=event.timestamp,
            )

    def outcome(self, run_id, result, *, by):
        error = type(result.error).__name__ if result.error is not None else None
        if result.status in ("completed", "failed") and error not in LOSSES:
            self.log(
                "ended",
                run=run_id,
                status=result.status,
                said=result.final_message.text if result.final_message else None,
                error=str(result.error),
                by=by,
            )
            return True
        if result.status not in ("interrupted", "drained", "stuck"):
            self.log(
                "lost", run=run_id, status=result.status, error=f"{error}: {result.error}", by=by
            )
        return False

    async def consume(self, run):
        async for event in run:
            self.show(event, fence_of(run._progress.context))
        return await run

    async def see_to_end(self, tag):
        """Ask until it has ended, as a client does that must know."""
        session = session_of(self.seed, tag)
        self.log("asked", run=tag, session=session)
        while True:
            try:
                front = self.runner if session is None else self.runner.session(session)
                result = await self.consume(front.query(tag, run_id=tag, checkpoint_id=tag))
                if self.outcome(tag, result, by="asker"):
                    return
                if result.status == "interrupted":
                    await self.answer(tag)
                elif result.status == "stuck":
                    await self.retry(tag)
            except OffbookError as problem:
                self.log("refused", run=tag, error=f"{type(problem).__name__}: {problem}")
                if isinstance(problem, UsageError):
                    # Asked for by its id, a run that was set aside says that it is another agent's.
                    await self.retry(tag)
            await asyncio.sleep(0.1)

    async def answer(self, tag):
        """Say yes; now and then twice in the same moment."""
        waiting = (await self.runner.info(tag)).waiting
        if not waiting:
            return  # another process was faster
        runs = [self.runner.approve(waiting[0]) for _ in range(random.choice((1, 1, 2)))]
        results = await asyncio.gather(*map(self.consume, runs), return_exceptions=True)
        won = [result for result in results if not isinstance(result, BaseException)]
        for problem in (result for result in results if isinstance(result, BaseException)):
            if not isinstance(problem, CheckpointError):
                raise problem
        self.log("answered", run=tag, won=len(won))
        for result in won:
            self.outcome(tag, result, by="resume")

    async def retry(self, tag):
        """Give it another life, if it was set aside."""
        try:
            if any(run.id == tag for run in await self.runner.stuck()):
                self.log("stuck", run=tag)
                self.outcome(tag, await self.consume(await self.runner.retry(tag)), by="retry")
        except OffbookError as problem:
            self.log("refused", run=tag, error=f"{type(problem).__name__}: {problem}")

    async def ask_on(self, name):
        """One of those who send: one thing after the other, now and then the same as others at this
        moment.
        """
        number = 0
        while True:
            number += 1
            shared = random.random() < 0.2
            await self.see_to_end(f"all-{int(now())}" if shared else f"{name}-{number}")

    async def post_on(self, name):
        """Post to sessions, as a client does that sends it again until it has the receipt."""
        number = 0
        while True:
            number += 1
            era = int(name.split(".")[1]) // LIVES_OF_A_SESSION
            session = f"{random.choice(POSTED_TO)}.{era}"
            when = random.choice(("safe_point", "safe_point", "turn_end", "preempt"))
            later = timedelta(seconds=random.uniform(0.1, 3)) if random.random() < 0.2 else None
            text = f"post-{name}-{number}"
            while True:
                try:
                    posted = await self.runner.session(session).post(
                        text, id=text, when=when, sender=name, not_before=later
                    )
                except OffbookError as problem:
                    self.log("refused", run=None, error=f"{type(problem).__name__}: {problem}")
                    await asyncio.sleep(0.1)
                else:
                    break
            self.log(
                "posted",
                session=session,
                text=text,
                sender=name,
                number=posted.seq,
                later=later is not None,
            )
            await asyncio.sleep(random.uniform(0, 0.2))

    async def recover(self):
        """The same as `recover_every`, but somebody looks on."""
        while True:
            try:
                for run in await self.runner.recover():
                    self.log("recovered", run=run.id)
                    _keep(asyncio.create_task(self.look_on(run)))
            except OffbookError as problem:
                self.log("refused", run=None, error=f"{type(problem).__name__}: {problem}")
            await asyncio.sleep(0.3)

    async def look_on(self, run):
        try:
            self.outcome(run.id, await self.consume(run), by="recover")
        except OffbookError as problem:
            self.log("refused", run=run.id, error=f"{type(problem).__name__}: {problem}")

    async def finish(self, tags, sessions):
        """All is calm again: see everything to its end, and write down what is there."""
        _keep(asyncio.create_task(self.recover()))
        for start in range(0, len(tags), 40):
            await asyncio.gather(*(self.see_to_end(tag) for tag in tags[start : start + 40]))
        while await self.store_keys():
            # One that has ended, but could not write that, and was set aside after that.
            for run in await self.runner.stuck():
                await self.retry(run.id)
            await asyncio.sleep(0.2)
        for session in [name for name in sessions if name.startswith("p")]:
            while await self.runner.session(session).inbox():
                await asyncio.sleep(0.1)
        while await self.store_keys():  # turns that the last posts have started
            await asyncio.sleep(0.2)
        for session in sessions:
            said = [
                [message.role, message.text]
                for message in await self.runner.session(session).history()
            ]
            self.log("history", session=session, said=said)
        self.log("over")

    async def prune_on(self):
        """Beside everything else."""
        while True:
            await asyncio.sleep(random.uniform(0.5, 3))
            with contextlib.suppress(OffbookError):
                await self.runner.store.prune()

    async def write_large(self):
        """Values for which others wait, and such as are too large for the store."""
        store = self.runner.store
        store._largest = LARGEST
        while True:
            await asyncio.sleep(random.uniform(1, 6))
            try:
                await store.set("large", os.urandom(random.randrange(LARGEST)))
                await store.set("large", bytes(LARGEST + 1))
                self.log("taken", run=None)
            except ValueRefused:
                pass
            except OffbookError as problem:
                self.log("refused", run=None, error=f"{type(problem).__name__}: {problem}")

    async def fork_on(self):
        """At any moment: the child uses the store, and ends."""
        while True:
            await asyncio.sleep(random.uniform(1, 5))
            pid = os.fork()
            if pid == 0:
                self.live_forked()
            code = await asyncio.to_thread(
                lambda pid: os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), pid
            )
            self.log("forked", code=code)

    def live_forked(self):
        signal.alarm(FORK_SECONDS)
        code = 1
        try:
            asyncio.run(self.use_forked())
            code = 0
        except OffbookError:
            code = 0  # the trouble is the child's, too
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)

    async def use_forked(self):
        store, key = self.runner.store, f"forked:{os.getpid()}"
        await store.set(key, b"1")
        if await store.get(key) != b"1":
            self.log("forked", code="what a child has written was not there")
        await store.delete(key)
        await store.aclose()

    async def be_full(self, flag):
        """No file of this process grows while there is a file of that name, but for the log."""
        while True:
            await asyncio.sleep(0.2)
            size = max((path.stat().st_size for path in flag.parent.glob("*.jsonl")), default=0) + (
                1 << 20
            )
            resource.setrlimit(
                resource.RLIMIT_FSIZE,
                (size if flag.exists() else resource.RLIM_INFINITY, resource.RLIM_INFINITY),
            )

    async def store_keys(self):
        """What is unfinished."""
        store = self.runner.store
        statuses = ("pending", "running", "drained", "stuck")
        rows = await store.run_entries(RunQuery(statuses, limit=10_000))
        return [row.key for row in rows if row.claim or row.status == "stuck"]


class Noting(RunHooks):
    """Writes down what nobody looks at: the ends of runs that `recover_every` has continued.

    It holds up calls that are recorded and have not begun.
    """

    def __init__(self, worker):
        self._worker = worker

    async def on_tool_start(self, context, agent, tool, call):
        await asyncio.sleep(random.uniform(0, 0.1))

    def on_run_end(self, context, result):
        for event in result.events:
            self._worker.show(event, fence_of(context))
        self._worker.outcome(context.run_id, result, by="hook")


_tasks = set()


def _keep(task):
    _tasks.add(task)
    task.add_done_callback(_tasks.discard)


async def main(recipe, folder, name, seed, how=None):
    kind, args, kwargs = json.loads(recipe)
    log = Log(f"{folder}/{name.partition('.')[0]}.jsonl")
    log("born", name=name, pid=os.getpid())
    watch_leases()
    waits = Waits(log, LONGEST_ANSWER[kind])
    async with (
        getattr(runtime, kind)(*args, **kwargs) as store,
        ActorSystem(lease_seconds=LEASE_SECONDS) as system,
    ):
        worker = Worker(log, store, system, int(seed))
        troubles = []
        if how == "troubled":
            troubles = [
                worker.prune_on(),
                worker.write_large(),
                worker.fork_on(),
                worker.be_full(Path(folder, "full")),
            ]
        if how == "end":
            async with worker.runner.attending(every=0.3, recover_every=None):
                await worker.finish(
                    *(Path(folder, name).read_text().split() for name in ("tags", "sessions"))
                )
            for task in list(_tasks):
                task.cancel()
            waits.end()
            return
        senders = [
            *(worker.ask_on(f"{name}.{number}") for number in range(SENDERS)),
            *(worker.post_on(f"{name}.{number}") for number in range(POSTERS)),
        ]
        async with worker.runner.attending(every=0.3, recover_every=None):
            if random.random() < 0.5:
                async with worker.runner.recover_every(0.3):
                    await asyncio.gather(*troubles, *senders)
            else:
                await asyncio.gather(*troubles, worker.recover(), *senders)


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(main(*sys.argv[1:]))
