"""What somebody has worked on, nobody works on again: interrupts that were answered, runs that were
continued, and those of whoever is still alive.
"""

import asyncio
import os
import signal

import pytest

from offbook.actors import Agent, ChatModelAgent, ToolContext, tool
from offbook.runtime import (
    ActorSystem,
    AgentEvent,
    ResumeError,
    Runner,
    ScriptedModel,
    StoreError,
    ToolCalls,
)
from tests.doubles.snapshots import Snapshots, events_of


class Silent(Agent):
    """Asks, then does something, of which it says nothing."""

    def __init__(self, done):
        super().__init__(name="A")
        self.done = done

    async def run(self, asked, context):
        if context.resume is None:
            yield context.interrupt("?")
            return
        self.done.append(context.resume.data)


def approving(done, gate=None):
    """An agent with a tool that asks before it does something."""

    @tool
    async def pay(context: ToolContext) -> str:
        answer = context.interrupt("sure?")
        done.append(answer)
        if gate is not None:
            await gate.wait()
        return f"paid {answer}"

    def reply(request):
        return "done" if request.messages[-1].role == "tool" else ToolCalls("pay")

    return ChatModelAgent(name="A", model=ScriptedModel([reply] * 20), tools=[pay])


@pytest.mark.parametrize("durability", ["interrupt", "step"])
def test_an_id_may_be_used_again_when_its_checkpoint_is_gone(run, durability):
    """It may have been deleted, or pruned, or have expired: before what says that it was answered,
    which was written later.
    """
    done, store = [], Snapshots()

    async def main():
        runner = Runner(approving(done), store=store, durability=durability)
        for number in range(3):
            await runner.query("go", checkpoint_id="c")
            assert (await runner.resume("c", data=number)).status == "completed"
            await store.delete("c")
        assert done == [0, 1, 2]

    run(main())


@pytest.mark.parametrize("durability", ["interrupt", "step"])
def test_a_resume_that_shows_nothing_is_an_answer(run, durability):
    done, store = [], Snapshots()

    async def main():
        runner = Runner(Silent(done), store=store, durability=durability)
        await runner.query("go", checkpoint_id="c")
        result = await runner.resume("c", data=1)
        assert (result.status, result.events) == ("completed", ())
        with pytest.raises(ResumeError, match="already answered"):
            await runner.resume("c", data=2)
        assert done == [1]

    run(main())


def test_g08_a_resume_that_was_lost_before_its_first_step_and_is_recovered_is_an_answer(run):
    """Recovering goes on with the answer that was given. Nobody can give another one then."""
    done, store = [], Snapshots()

    async def main():
        agent = approving(done)
        await Runner(agent, store=store, durability="step", keep="unfinished").query(
            "go", checkpoint_id="c"
        )
        interrupted = len(store.taken)
        await Runner(agent, store=store, durability="step", keep="unfinished").resume("c", data=1)
        at = next(
            index
            for index, (what, _) in enumerate(store.taken)
            if index >= interrupted and what.has("put", ":answered:")
        )
        assert done == [1]
        left = Snapshots(store.taken[at - 1][1])
        (recovered,) = await Runner(
            agent, store=left, durability="step", keep="unfinished"
        ).recover()
        assert (await recovered).final_message.text == "done"
        assert done == [1, 1]
        with pytest.raises(ResumeError, match="already answered"):
            await Runner(agent, store=left, durability="step", keep="unfinished").resume(
                "c", data=2
            )
        assert done == [1, 1]

    run(main())


def test_g08_what_a_lost_resume_brought_along_is_lost_with_it(run):
    """It may be answered anew, and goes on from the interrupt, not from what somebody had wanted
    before.
    """
    store = Snapshots()

    async def main():
        agent = approving([])
        await Runner(agent, store=store, durability="step", keep="unfinished").query(
            "go", checkpoint_id="c", session_values={"kept": 1}
        )
        interrupted = len(store.taken)
        await Runner(agent, store=store, durability="step", keep="unfinished").resume(
            "c", data=1, session_values={"brought": 1}
        )
        at = next(
            index
            for index, (what, _) in enumerate(store.taken)
            if index >= interrupted and what.has("put", ":answered:")
        )
        left = Snapshots(store.taken[at - 1][1])
        again = await Runner(agent, store=left, durability="step", keep="unfinished").resume(
            "c", data=2
        )
        assert again.session_values == {"kept": 1}
        steps = [
            content
            for what, content in left.taken
            if what.has("append", ":journal:") and len(events_of(content)) == 2
        ]
        last = Snapshots(steps[-1])  # lost again, behind its first step
        (recovered,) = await Runner(
            agent, store=last, durability="step", keep="unfinished"
        ).recover()
        assert (await recovered).session_values == {"kept": 1}

    run(main())


def test_g08_a_branch_that_is_at_work_is_nobody_elses(run):
    done, gate = [], asyncio.Event()

    async def main():
        runner = Runner(
            approving(done, gate), store=Snapshots(), durability="step", keep="unfinished"
        )
        await runner.query("go", checkpoint_id="c")
        gate.set()
        await runner.resume("c", data=1)
        gate.clear()
        branch = runner.resume("c@1", data=2)
        while len(done) < 2:
            await asyncio.sleep(0)
        assert await runner.recover() == []
        gate.set()
        assert (await branch).status == "completed"
        assert done == [1, 2]

    run(main())


class Held(Snapshots):
    """Holds whoever is the first to claim a run, until `gate` is opened."""

    def __init__(self, content, gate):
        super().__init__(content)
        self.gate = gate
        self.waiting = asyncio.Event()

    async def before(self, call):
        if call.method == "claim" and not self.waiting.is_set():
            self.waiting.set()
            await self.gate.wait()


class Twice(Agent):
    """Asks, and when it was answered does two things; what it has done it does not note."""

    def __init__(self, done):
        super().__init__(name="A")
        self.done = done

    async def run(self, asked, context):
        if context.resume is None:
            yield context.interrupt("?")
            return
        for number in range(2):
            self.done.append(number)
            yield AgentEvent.say(f"did {number}")


def test_g08_a_run_that_was_continued_while_somebody_else_looked_at_it_is_not_continued_again(run):
    """It has a checkpoint, so its journal is kept."""
    done, store, gate = [], Snapshots(), asyncio.Event()

    async def main():
        agent = Twice(done)
        await Runner(agent, store=store, durability="step", keep="unfinished").query(
            "go", checkpoint_id="c"
        )
        await Runner(agent, store=store, durability="step", keep="unfinished").resume("c", data=1)
        left = next(content for what, content in store.taken if len(events_of(content)) == 1)
        held = Held(left, gate)
        late = asyncio.create_task(
            Runner(agent, store=held, durability="step", keep="unfinished").recover()
        )
        await held.waiting.wait()
        done.clear()
        other = ActorSystem()  # as that of another process
        other.bind(asyncio.get_running_loop(), for_one=True)
        (first,) = await Runner(
            agent, store=held, durability="step", keep="unfinished", system=other
        ).recover()
        assert (await first).status == "completed"
        count = len(done)
        gate.set()
        assert await late == []
        assert len(done) == count
        await other.stop()

    run(main())


class Full(Snapshots):
    """Takes no checkpoint as long as it is full."""

    full = True

    async def before(self, call):
        if self.full and any(
            word == "put" and not key.startswith("offbook:") for word, key in call.changes
        ):
            raise OSError("no room")


def test_g08_an_interrupt_that_could_not_be_saved_is_saved_by_recovering(run):
    """Each step before it is in the store: it asks again, and that is saved."""
    done, store = [], Full()

    async def main():
        runner = Runner(approving(done), store=store, durability="step", keep="unfinished")
        result = await runner.query("go", checkpoint_id="c")
        assert result.status == "failed"
        assert isinstance(result.error, StoreError)
        assert "c" not in await store.keys()
        store.full = False
        (again,) = await runner.recover()
        assert (await again).status == "interrupted"
        assert await runner.recover() == []
        assert (await runner.resume("c", data=1)).final_message.text == "done"
        assert done == [1]

    run(main())


def test_nothing_is_left_of_a_run_that_ends_wherever_its_end_is_cut_short(run):
    """Without a checkpoint nobody can go back to it."""
    store = Snapshots()

    async def main():
        agent = ChatModelAgent(name="A", model=ScriptedModel(["hello"] * 9))
        await Runner(agent, store=store, durability="step", keep="unfinished").query("go")
        assert store.content() == {}
        for _what, content in store.taken:
            left = Snapshots(content)
            for recovered in await Runner(
                agent, store=left, durability="step", keep="unfinished"
            ).recover():
                assert (await recovered).status == "completed"
            assert left.content() == {}

    run(main())


@pytest.mark.filterwarnings("ignore:.*use of fork.*:DeprecationWarning")
def test_a_forked_process_takes_no_run_of_its_parents(run, store_of):
    """What it knows of its parent's leases is what there was when it was forked."""
    done, gate = [], asyncio.Event()

    async def main():
        store = store_of("sqlite")
        runner = Runner(approving(done, gate), store=store, durability="step", keep="unfinished")
        await runner.query("go", checkpoint_id="c")
        await runner.query("go", checkpoint_id="d")
        first = runner.resume("c", data=1)  # a lease is held when the child is made
        while len(done) < 1:
            await asyncio.sleep(0)
        tell, told = os.pipe()
        child = os.fork()
        if child == 0:
            signal.alarm(30)
            os.close(told)
            os.read(tell, 1)
            os._exit(claims(store))
        second = runner.resume("d", data=2)
        while len(done) < 2:
            await asyncio.sleep(0.001)
        os.write(told, b"x")
        _pid, status = await asyncio.to_thread(os.waitpid, child, 0)
        assert os.waitstatus_to_exitcode(status) == 0, "the number of runs that the child has taken"
        gate.set()
        assert [(await one).status for one in (first, second)] == ["completed", "completed"]
        os.close(tell)
        os.close(told)

    run(main())


def claims(store):
    """How many runs this process finds that nobody works on."""

    async def main():
        return len(
            await Runner(approving([]), store=store, durability="step", keep="unfinished").recover()
        )

    try:
        return asyncio.run(main())
    except BaseException:
        return 99


@pytest.mark.parametrize("durability", ["interrupt", "step"])
def test_g08_an_answer_that_leads_to_the_next_question_is_lost_only_together_with_it(
    run, durability
):
    """Wherever its process is lost, there is a question left that can be answered, or a run that
    can be recovered.
    """

    @tool
    async def ask(context: ToolContext) -> str:
        return f"told {context.interrupt('first?')} and {context.interrupt('second?')}"

    def reply(request):
        return "done" if request.messages[-1].role == "tool" else ToolCalls("ask")

    agent = ChatModelAgent(name="A", model=ScriptedModel([reply] * 99), tools=[ask])

    async def main():
        store = Snapshots()
        await Runner(agent, store=store, durability=durability).query("go", checkpoint_id="c")
        start = len(store.taken)
        second = await Runner(agent, store=store, durability=durability).resume("c", data=1)
        assert [context.info for context in second.interrupts] == ["second?"]
        for _what, content in store.taken[start - 1 :]:
            runner = Runner(agent, store=Snapshots(content), durability=durability)
            for one in await runner.recover():
                assert [context.info for context in (await one).interrupts] == ["second?"]
            result = await runner.resume("c", data=2)
            if result.status == "interrupted":
                assert [context.info for context in result.interrupts] == ["second?"]
                result = await runner.resume("c", data=3)
            assert result.final_message.text == "done"
            assert result.events[0].message.text in ("told 1 and 2", "told 2 and 3")

    run(main())
