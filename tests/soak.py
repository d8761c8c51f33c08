"""What a service goes through: runs, interrupts, resumes, cancels and sessions, at random, with
models and a store that fail now and then.

Owns: the load, and what each piece of it must have come to. `test_soak.py` looks at what is left of
it.
"""

import asyncio
from collections import Counter, defaultdict

from offbook.actors import ChatModelAgent, Parallel, Sequential, ToolContext, tool
from offbook.runtime import (
    CheckpointError,
    Message,
    ModelError,
    ResumeError,
    Runner,
    StoreError,
    ToolCall,
)


class FailingStore:
    """A store that fails now and then: before it has done what it was asked, or after."""

    def __init__(self, store, random, share):
        self.store = store
        self.share = share
        self.failures = 0
        self._random = random

    def __getattr__(self, name):
        method = getattr(self.store, name)

        async def call(*args, **options):
            dice = self._random.random()
            if dice < self.share / 2:
                self.failures += 1
                raise ConnectionError("the line is broken")
            result = await method(*args, **options)
            if dice < self.share:
                self.failures += 1
                raise ConnectionError("the answer is lost")
            return result

        return call


class Moody:
    """A model that calls tools, answers, waits a turn or fails; each a matter of luck."""

    def __init__(self, random):
        self._random = random

    async def generate(self, request):
        for _ in range(self._random.randrange(3)):
            await asyncio.sleep(0)
        dice = self._random.random()
        if dice < 0.05:
            raise ModelError("out of luck")
        names = [spec.name for spec in request.tools]
        said = sum(message.role == "assistant" for message in request.messages)
        if names and dice < 0.5 and said < 60:
            calls = tuple(
                ToolCall("", self._random.choice(names), "{}")
                for _ in range(self._random.randrange(1, 3))
            )
            return Message.assistant("", calls)
        return Message.assistant(f"answer to {request.messages[-1].text[:40]}")


@tool
async def look() -> str:
    await asyncio.sleep(0)
    return "seen"


@tool
def count() -> int:
    return 1


@tool
async def ask(context: ToolContext) -> str:
    return f"was told {context.interrupt('what now?')}"


@tool(needs_approval=True)
async def pay(context: ToolContext) -> str:
    context.session["paid"] = context.session.get("paid", 0) + 1
    return "paid"


def team(random):
    def one(name, *tools):
        return ChatModelAgent(name=name, model=Moody(random), tools=tools, max_iterations=8)

    inner = one("inner", ask, count).as_tool(name="inner")
    both = Parallel(name="both", sub_agents=[one("left", look, ask), one("right", pay, inner)])
    return Sequential(name="team", sub_agents=[one("first", look, count), both, one("last", ask)])


class Load:
    """So many at once, until the time is over."""

    def __init__(self, system, store, random, sessions=20):
        self.store = store
        self.random = random
        self.done = Counter()
        # For each session: what was sent, and whether that is certain to be in it; in its order.
        self.sent = defaultdict(list)
        self._names = [f"session {number}" for number in range(sessions)]
        self.agent = team(random)
        self.runners = [
            Runner(self.agent, system=system, store=store, durability=durability)
            for durability in ("interrupt", "step")
        ]
        self.talker = Runner(
            ChatModelAgent(
                name="talker", model=Moody(random), tools=[look, count], max_iterations=8
            ),
            system=system,
            store=store,
        )
        self._number = 0

    async def work(self, until):
        """One of those who send."""
        kinds = (self._run, self._interrupted, self._cancelled, self._left, self._talk, self._talk)
        while not until():
            kind = self.random.choice(kinds)
            try:
                await kind()
            except StoreError:
                self.done["store failed"] += 1

    async def _run(self):
        result = await self.random.choice(self.runners).query("go")
        assert result.status in ("completed", "failed", "interrupted"), result
        self._check(result)
        self.done[f"run {result.status}"] += 1

    async def _interrupted(self):
        """A run that is resumed until it has ended; now and then by two at the same instant."""
        runner = self.random.choice(self.runners)
        run = runner.query("go")
        result = await run
        while result.status == "interrupted" and result.error is None:
            targets = {
                context.id: True for context in result.interrupts if self.random.random() < 0.7
            }
            twice = [
                runner.resume(run.checkpoint_id, targets)
                for _ in range(self.random.choice((1, 1, 2)))
            ]
            results = await asyncio.gather(*twice, return_exceptions=True)
            won = [one for one in results if not isinstance(one, BaseException)]
            for one in results:
                if isinstance(one, BaseException) and not isinstance(
                    one, (ResumeError, StoreError)
                ):
                    raise one
            assert len(won) <= 1, "an interrupt was answered twice"
            if not won:
                self.done["resume failed"] += 1
                return
            result = won[0]
            self.done["resumed"] += 1
        self._check(result)

    async def _cancelled(self):
        runner = self.random.choice(self.runners)
        run = runner.query("go")
        stop_at = self.random.randrange(6)
        async for event in run:
            if event.seq >= stop_at:
                break_mode = self.random.choice(("immediate", "after_model", "after_tools"))
                run.cancel(break_mode, timeout=self.random.choice((None, 0.0, 0.01)))
        result = await run
        self.done[f"cancelled: {result.status}"] += 1
        if result.status == "cancelled" and self.random.random() < 0.5:
            try:
                self._check(await runner.resume(run.checkpoint_id))
                self.done["went on"] += 1
            except CheckpointError:
                self.done["resume failed"] += 1

    async def _left(self):
        async for event in self.random.choice(self.runners).query("go"):
            if event.seq > 2:
                break
        self.done["left"] += 1

    async def _talk(self):
        name = self.random.choice(self._names)
        self._number += 1
        text = f"message {self._number}"
        entry = [text, False]
        self.sent[name].append(entry)
        result = await self.talker.session(name).query(text)
        entry[1] = not isinstance(result.error, StoreError)
        self._check(result)
        self.done["said"] += 1

    def _check(self, result):
        if (
            result.error is not None
            and not isinstance(result.error, (ModelError, StoreError, CheckpointError))
            and result.status == "failed"
        ):
            assert "called its model" in str(result.error), result.error

    async def check_sessions(self):
        """Each session holds what was sent to it, once, in its order."""
        self.store.share = 0
        for name in self._names:
            history = [
                message.text
                for message in await self.talker.session(name).history()
                if message.role == "user"
            ]
            sent = [text for text, _ in self.sent[name]]
            certain = [text for text, is_certain in self.sent[name] if is_certain]
            assert len(set(history)) == len(history), f"{name}: something is there twice"
            assert [text for text in sent if text in set(history)] == history, (
                f"{name}: {history} is not what was sent"
            )
            assert set(certain) <= set(history), f"{name}: lost {set(certain) - set(history)}"
        self.sent.clear()
        for name in self._names:
            await self.talker.session(name).clear()

    async def end_unfinished(self):
        """Go on with what was left unfinished, because the store had failed.

        The store works by now.
        """
        self.store.share = 0
        for runner in (*self.runners, self.talker):
            for run in await runner.recover():
                result = await run
                self.done[f"recovered: {result.status}"] += 1

    async def forget_runs(self):
        """What is kept of runs that were cancelled, or wait for an answer, is not wanted any
        more.
        """
        for runner in (*self.runners, self.talker):
            while runs := await runner.runs(limit=1000):
                for info in runs:
                    await runner.forget(info.id)
        for key in await self.store.keys(""):
            if not key.startswith("offbook:") and "@" not in key:
                await self.runners[0].forget(key)
