"""Long histories in checkpoints: a save is as long as what is new."""

import pytest

from offbook.actors import ChatModelAgent, ToolContext, tool
from offbook.runtime import ActorSystem, CheckpointError, MemoryStore, Message, Runner, ToolCall
from offbook.runtime.durability.store_keys import history_key
from tests.doubles.watched_stores import WatchedStore

ROUNDS = 60


class Asking:
    """A model that lets the tool be called so many times, and then says how many messages it
    sees.
    """

    def __init__(self):
        self.rounds = ROUNDS
        self.seen = 0

    async def generate(self, request):
        done = sum(message.role == "tool" for message in request.messages)
        self.seen = len(request.messages)
        if done == self.rounds:
            return Message.assistant("end")
        return Message.assistant("x" * 50, (ToolCall(f"c{done}", "ask", "{}"),))


class Counting(WatchedStore):
    """Counts the bytes that are written."""

    written = 0

    async def before(self, call):
        self.written += call.size


@tool
def ask(context: ToolContext) -> str:
    return str(context.interrupt("?"))


@pytest.mark.parametrize("durability", ["interrupt", "step"])
def test_each_of_many_saves_costs_what_the_first_ones_do(run, durability):
    async def main():
        store, model, costs = Counting(), Asking(), []
        async with ActorSystem() as system:
            runner = Runner(
                ChatModelAgent(name="A", model=model, tools=[ask], max_iterations=ROUNDS + 1),
                system=system,
                store=store,
                durability=durability,
            )
            play = runner.query("go")
            result = await play
            for number in range(ROUNDS):
                assert result.status == "interrupted"
                before = store.written
                play = runner.resume(play.checkpoint_id, data=f"answer {number}")
                result = await play
                costs.append(store.written - before)
            assert (result.final_output, model.seen) == ("end", 1 + 2 * ROUNDS)
        early, late = sum(costs[10:30]), sum(costs[-21:-1])
        assert late < 1.7 * early  # at most a piece more or less, and the mark of a place in it

    run(main())


def test_a_branch_from_a_save_with_a_long_history_has_all_of_it(run):
    async def main():
        store, model = MemoryStore(), Asking()
        model.rounds = 50
        async with ActorSystem() as system:
            runner = Runner(
                ChatModelAgent(name="A", model=model, tools=[ask], max_iterations=99),
                system=system,
                store=store,
            )
            play = runner.query("go")
            await play
            for _ in range(49):
                await runner.resume(play.id, data="first")
            assert (await runner.resume(play.id, data="first")).final_output == "end"
            branch = runner.resume(f"{play.id}@45", data="other")
            result = await branch
            while result.status == "interrupted":
                branch = runner.resume(branch.checkpoint_id, data="other")
                result = await branch
            assert (result.final_output, model.seen) == ("end", 101)
            assert [
                event.message.text for event in result.events if event.message.role == "tool"
            ] == ["other"]

    run(main())


@pytest.mark.parametrize("damage", ["gone", "short", "foreign"])
def test_g09_a_history_in_pieces_that_is_damaged_is_refused(run, damage):
    async def main():
        store, model = MemoryStore(), Asking()
        async with ActorSystem() as system:
            runner = Runner(
                ChatModelAgent(name="A", model=model, tools=[ask], max_iterations=99),
                system=system,
                store=store,
            )
            play = runner.query("go")
            await play
            for _ in range(50):
                await runner.resume(play.id, data="x")
            key = history_key(play.id)
            records = await store.read(key)
            await store.delete(key)
            if damage != "gone":
                await store.append(
                    key,
                    [records[0][:-9] if damage == "short" else await store.get(play.checkpoint_id)],
                )
            with pytest.raises(CheckpointError):
                await runner.resume(play.id, data="x")
            await store.delete(key)
            await store.append(key, records)
            assert (await runner.resume(play.id, data="x")).status == "interrupted"

    run(main())
