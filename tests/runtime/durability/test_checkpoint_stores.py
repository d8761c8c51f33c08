"""Checkpoints in stores of the user's own, in stores that fail, and of data that no store can
hold.
"""

import asyncio

import pytest

from offbook.actors import Agent, ChatModelAgent, Parallel, ToolContext, tool
from offbook.runtime import (
    AgentEvent,
    CheckpointError,
    MemoryStore,
    Runner,
    RunStatus,
    ScriptedModel,
    ToolCalls,
    UsageError,
)
from tests.doubles.waiting import Asker, Naive, Stage, chat, ids, told


class Plain:
    """The least that is a store, with plain functions."""

    def __init__(self):
        self.saved = {}
        self.log = []

    def get(self, key):
        self.log.append(("get", key))
        return self.saved.get(key)

    def set(self, key, value):
        assert isinstance(key, str)
        assert isinstance(value, bytes)
        self.log.append(("set", key))
        self.saved[key] = value

    def delete(self, key):
        self.log.append(("delete", key))
        self.saved.pop(key, None)


class Awaited:
    """The same with coroutines."""

    def __init__(self):
        self.plain = Plain()
        self.saved = self.plain.saved

    async def get(self, key):
        await asyncio.sleep(0)
        return self.plain.get(key)

    async def set(self, key, value):
        await asyncio.sleep(0)
        self.plain.set(key, value)

    async def delete(self, key):
        await asyncio.sleep(0)
        self.plain.delete(key)


@pytest.fixture(params=[Plain, Awaited])
def store(request):
    return request.param()


# --- stores of the user's own ---


def test_an_object_with_three_methods_is_a_store(store):
    stage = Stage(Asker("A", "1?", "2?"), store=store)
    stage.start(checkpoint_id="mine")
    assert stage.go_on(data=1).status == "interrupted"
    assert stage.go_on(data=2).final_output == "A heard 1,2"
    assert "mine" in store.saved
    assert {type(value) for value in store.saved.values()} == {bytes}
    with pytest.raises(CheckpointError, match="already answered"):
        stage.go_on(data=3)
    assert stage.go_on(id="mine@1", data="b").status == "interrupted"
    assert stage.go_on(id="mine@2", data="b").final_output == "A heard 1,b"


def test_in_one_process_an_interrupt_is_answered_once_in_such_a_store_as_well(run, store):
    paid = []

    @tool(needs_approval=True)
    async def pay(amount: int) -> str:
        paid.append(amount)
        await asyncio.sleep(0)
        return "paid"

    async def main():
        runner = Runner(
            chat("a", ToolCalls(pay={"amount": 5}), "end", "end", tools=[pay]), store=store
        )
        (waits,) = (await runner.query("q", checkpoint_id="1")).interrupts
        found = await asyncio.gather(
            *(runner.approve(waits) for _ in range(3)), return_exceptions=True
        )
        assert sorted(isinstance(one, CheckpointError) for one in found) == [False, True, True]

    run(main())
    assert paid == [5]


def test_what_was_put_in_a_store_is_enough_for_another_one(store):
    """Copied from store to store: nothing else is needed."""
    first = Stage(Parallel(name="P", sub_agents=[Asker("A"), Asker("B")]), store=store)
    found = ids(first.start(checkpoint_id="1"))
    other = Plain()
    other.saved.update(store.saved)
    again = Stage(Parallel(name="P", sub_agents=[Asker("A"), Asker("B")]), store=other)
    assert again.go_on({found["A"]: 1, found["B"]: 2}, id="1").status == "completed"


@pytest.mark.parametrize("wrong", [object(), "redis://", MemoryStore, 7])
def test_what_is_no_store_is_refused(wrong):
    with pytest.raises(UsageError, match="store"):
        Runner(Asker("A"), store=wrong).query("q").result(20)


def test_the_interrupt_is_in_the_store_before_it_is_shown(run, store):
    async def main():
        work = Runner(Asker("A"), store=store).query("q", checkpoint_id="1")
        async for event in work:
            assert event.action.contexts
            assert "1" in store.saved

    run(main())


# --- stores that fail ---


class Broken(Plain):
    """Raises from the moment that it is told to, in those methods."""

    def __init__(self, *methods):
        super().__init__()
        self.methods = methods
        self.is_broken = False

    def _fail(self, method):
        if self.is_broken and method in self.methods:
            raise ConnectionError(f"{method} went wrong")

    def get(self, key):
        self._fail("get")
        return super().get(key)

    def set(self, key, value):
        self._fail("set")
        super().set(key, value)

    def delete(self, key):
        self._fail("delete")
        super().delete(key)


def test_if_saving_fails_an_error_comes_before_the_interrupt():
    store = Broken("set")
    store.is_broken = True
    result = Stage(Asker("A"), store=store).start()
    kinds = [
        "error" if event.error is not None else type(event.action).__name__
        for event in result.events
    ]
    assert kinds == ["error", "Interrupted"]
    error = result.events[0].error
    assert isinstance(error, CheckpointError)
    assert "set went wrong" in str(error)
    assert isinstance(error.__cause__, ConnectionError)
    assert [context.info for context in result.interrupts] == ["A?"]


def test_if_saving_a_second_time_fails_the_first_save_is_there():
    store = Broken("set")
    stage = Stage(Asker("A", "1?", "2?"), store=store)
    stage.start(checkpoint_id="1")
    store.is_broken = True
    broken = stage.go_on(data="lost")
    assert any(event.error is not None for event in broken.events) or broken.error is not None
    store.is_broken = False
    result = stage.go_on(data="x")
    assert [context.info for context in result.interrupts] == ["2?"]
    assert stage.go_on(data="y").final_output == "A heard x,y"


def test_if_reading_fails_that_is_raised_and_nothing_runs():
    store, agent = Broken("get"), Asker("A")
    stage = Stage(agent, store=store)
    stage.start()
    store.is_broken = True
    with pytest.raises(CheckpointError, match="get went wrong") as caught:
        stage.go_on(data="x")
    assert isinstance(caught.value.__cause__, ConnectionError)
    assert len(agent.inputs) == 1
    store.is_broken = False
    assert stage.go_on(data="x").final_output == "A heard x"


@pytest.mark.parametrize(
    "value", ["a text", 7, ["bytes"], object()], ids=["text", "number", "list", "object"]
)
def test_a_store_that_returns_no_bytes_is_named(value):
    store = Plain()
    stage = Stage(Asker("A"), store=store)
    stage.start(checkpoint_id="1")
    store.saved["1"] = value
    with pytest.raises(CheckpointError):
        stage.go_on(data="x")


# --- bytes that are something else ---


def damaged(data):
    """What may become of bytes on their way."""
    yield b""
    yield b"\x00"
    yield b"not a checkpoint at all"
    yield data[:-1]
    yield data[: len(data) // 2]
    yield data + b"\x00"
    yield bytes(reversed(data))


def test_g09_damaged_bytes_are_refused_and_nothing_runs():
    store, agent = Plain(), Asker("A")
    stage = Stage(agent, store=store)
    stage.start(checkpoint_id="1")
    good = store.saved["1"]
    for number, bad in enumerate(damaged(good)):
        store.saved["1"] = bad
        with pytest.raises(CheckpointError):
            stage.go_on(data=number)
    assert len(agent.inputs) == 1
    store.saved["1"] = good
    assert stage.go_on(data="x").final_output == "A heard x"


def test_g09_bytes_with_one_bit_turned_over_are_refused_or_mean_something_else_but_never_crash():
    store = Plain()
    first = Stage(Asker("A"), store=store)
    first.start(checkpoint_id="1")
    good = store.saved["1"]
    for position in range(0, len(good), 7):
        bad = bytearray(good)
        bad[position] ^= 1 << (position % 8)
        again = Plain()
        again.saved["1"] = bytes(bad)
        try:
            result = Stage(Asker("A"), store=again).go_on(id="1", data="x")
        except CheckpointError:
            continue
        assert result.status in set(RunStatus)


# --- what no store can hold ---


@pytest.mark.parametrize("where", ["info", "state"])
def test_an_agent_is_told_where_it_gives_what_cannot_be_kept(where):
    caught = []

    class Gives(Agent):
        async def run(self, input, context):
            try:
                context.interrupt(**{where: object()})
            except CheckpointError as error:
                caught.append(str(error))
            yield AgentEvent.say("I know better now")

    assert Stage(Gives(name="A")).start().final_output == "I know better now"
    assert len(caught) == 1
    assert where in caught[0]
    assert "object" in caught[0]


@pytest.mark.parametrize("kind", ["def", "async def"])
@pytest.mark.parametrize("where", ["info", "state"])
def test_a_tool_is_told_where_it_gives_what_cannot_be_kept(where, kind):
    caught = []

    def body(context):
        try:
            context.interrupt(**{where: {"deep": [lambda: None]}})
        except CheckpointError as error:
            caught.append(str(error))
        return "I know better now"

    def give(context: ToolContext) -> str:
        return body(context)

    async def give_async(context: ToolContext) -> str:
        return body(context)

    agent = chat(
        "a",
        ToolCalls(give={}),
        "end",
        tools=[tool(name="give")(give if kind == "def" else give_async)],
    )
    assert Stage(agent).start().status == "completed"
    assert told(agent.model) == [("give", "I know better now")]
    assert len(caught) == 1
    assert where in caught[0]


def test_an_agent_that_does_not_listen_fails():
    class Gives(Agent):
        async def run(self, input, context):
            yield context.interrupt(object())

    result = Stage(Gives(name="A")).start()
    assert result.status is RunStatus.FAILED
    assert isinstance(result.error, CheckpointError)
    assert result.interrupts == ()


def test_without_a_store_anything_goes():
    thing = object()

    class Gives(Agent):
        async def run(self, input, context):
            yield context.interrupt(thing, state=thing)

    assert Runner(Gives(name="A")).query("q").result(20).interrupts[0].info is thing


def test_what_cannot_be_kept_is_no_answer():
    agent = Naive(name="A")
    stage = Stage(agent)
    waits = stage.start().interrupts[0].id
    for given in (
        {"data": object()},
        {"targets": {waits: {1, 2, (lambda: None)}}},
        {"session_values": {"x": object()}},
    ):
        with pytest.raises(CheckpointError):
            stage.go_on(**given)
    assert stage.go_on(data="x").final_output == "A heard x"


def test_session_values_that_cannot_be_kept_are_named_where_the_run_is_kept():
    """They are given long before; the save is where it shows, and it says which."""

    class Gives(Agent):
        async def run(self, input, context):
            context.session["socket"] = object()
            yield context.interrupt("?")

    result = Stage(Gives(name="A")).start()
    errors = [event.error for event in result.events if event.error is not None]
    assert errors
    assert isinstance(errors[0], CheckpointError)
    assert "socket" in str(errors[0])


def test_a_model_that_cannot_be_kept_does_not_have_to_be():
    """Definitions are not in a checkpoint."""
    model = ScriptedModel([ToolCalls(ask={}), "end"])
    model.socket = object()

    @tool
    async def ask(context: ToolContext) -> str:
        return str(context.interrupt("?"))

    stage = Stage(ChatModelAgent(name="a", model=model, tools=[ask]))
    assert stage.start().error is None
    assert stage.go_on(data="x").status == "completed"
