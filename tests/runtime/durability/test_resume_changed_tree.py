"""A run goes on with definitions that have changed meanwhile: as long as those that it needs are
there. If not, it says what is missing, and runs nothing.
"""

import subprocess
import sys
from dataclasses import dataclass

import pytest
from pydantic import BaseModel

from offbook.actors import (
    Agent,
    ChatModelAgent,
    Loop,
    Parallel,
    Sequential,
    Supervisor,
    ToolContext,
    tool,
)
from offbook.runtime import (
    AgentEvent,
    CheckpointError,
    MemoryStore,
    Runner,
    ScriptedModel,
    SQLiteStore,
    ToolCalls,
    register_type,
)
from tests.doubles.waiting import Asker, Stage, chat, to


@tool
async def ask(context: ToolContext) -> str:
    return f"heard {context.interrupt('?')}"


@tool
async def other(text: str) -> str:
    return text


@tool(name="ask")
async def ask_differently(context: ToolContext, tone: str = "kind") -> str:
    return f"{tone} heard {context.interrupt('?')}"


class Says(Agent):
    async def run(self, input, context):
        yield AgentEvent.say(f"{self.name} says")


def says(name):
    return Says(name=name)


ASKS = (ToolCalls(ask={}),)


def worker(name="W", *, script=ASKS, tools=(ask,), **options):
    return chat(name, *script, tools=tools, **options)


def go_on_with(before, after, data="x"):
    """Interrupt a run of one tree, and go on with another."""
    stage = Stage(before)
    assert stage.start().status == "interrupted"
    return Runner(after, store=stage.store).resume(stage.id, data=data).result(20)


# --- what may change ---

COMPATIBLE = {
    "the same": (lambda: worker(), lambda: worker(script=["end"])),
    "a tool was added": (lambda: worker(), lambda: worker(script=["end"], tools=(other, ask))),
    "the tool does something else": (
        lambda: worker(),
        lambda: worker(script=["end"], tools=(ask_differently,)),
    ),
    "another tool was taken away": (
        lambda: worker(tools=(ask, other)),
        lambda: worker(script=["end"]),
    ),
    "another instruction and description": (
        lambda: worker(),
        lambda: worker(script=["end"], instruction="Be kind."),
    ),
    "an agent was added behind": (
        lambda: Sequential(name="S", sub_agents=[worker()]),
        lambda: Sequential(
            name="S", sub_agents=[worker(script=["w ends"]), says("new"), chat("last", "end")]
        ),
    ),
    "an agent was added under a sibling": (
        lambda: Sequential(name="S", sub_agents=[worker(), Sequential(name="T", sub_agents=[])]),
        lambda: Sequential(
            name="S",
            sub_agents=[
                worker(script=["w ends"]),
                Sequential(name="T", sub_agents=[chat("last", "end")]),
            ],
        ),
    ),
    "a sub-agent was added": (
        lambda: chat("R", to("W"), sub_agents=[worker()]),
        lambda: chat("R", sub_agents=[says("new"), worker(script=["end"]), says("newer")]),
    ),
    "a sub-agent that has no part in it was taken away": (
        lambda: chat("R", to("W"), sub_agents=[says("old"), worker()]),
        lambda: chat("R", sub_agents=[worker(script=["end"])]),
    ),
    "a supervised agent was added": (
        lambda: Supervisor(supervisor=chat("B", to("W")), sub_agents=[worker()]),
        lambda: Supervisor(
            supervisor=chat("B", "end"), sub_agents=[worker(script=["w ends"]), says("new")]
        ),
    ),
    "a loop may go round more often": (
        lambda: Loop(name="L", sub_agents=[worker()], max_iterations=1),
        lambda: Loop(name="L", sub_agents=[worker(script=["one", "end"])], max_iterations=2),
    ),
    "an agent in a tool has one more tool": (
        lambda: chat("O", ToolCalls(W={"request": "r"}), tools=[worker().as_tool()]),
        lambda: chat(
            "O", "end", tools=[worker(script=["w ends"], tools=(ask, other)).as_tool(), other]
        ),
    ),
}


@pytest.mark.parametrize(("before", "after"), COMPATIBLE.values(), ids=COMPATIBLE)
def test_a_tree_that_still_has_what_is_needed_goes_on(before, after):
    result = go_on_with(before(), after())
    result.raise_for_error()
    assert (result.status, result.final_output) == ("completed", "end")


def test_what_has_changed_is_what_plays():
    result = go_on_with(worker(), worker(script=["end"], tools=(ask_differently,)))
    assert result.events[0].message.text == "kind heard x"


# --- what may not ---

INCOMPATIBLE = {
    "the root has another name": (lambda: worker(), lambda: worker("X", script=["end"]), "W"),
    "the agent that waits is gone": (
        lambda: Sequential(name="S", sub_agents=[worker(), says("B")]),
        lambda: Sequential(name="S", sub_agents=[says("B")]),
        "W",
    ),
    "the agent that waits has another name": (
        lambda: Sequential(name="S", sub_agents=[worker()]),
        lambda: Sequential(name="S", sub_agents=[worker("X", script=["end"])]),
        "W",
    ),
    "somebody else stands in its place": (
        lambda: Sequential(name="S", sub_agents=[worker(), says("B")]),
        lambda: Sequential(name="S", sub_agents=[says("B"), worker(script=["end"])]),
        "W",
    ),
    "a child was put before one that has ended": (
        lambda: Sequential(name="S", sub_agents=[says("A"), worker()]),
        lambda: Sequential(name="S", sub_agents=[says("new"), says("A"), worker(script=["end"])]),
        "S",
    ),
    "the workflow is of another kind": (
        lambda: Sequential(name="S", sub_agents=[worker(), says("B")]),
        lambda: Parallel(name="S", sub_agents=[worker(script=["end"]), says("B")]),
        "S",
    ),
    "the agent is of another kind": (lambda: Asker("A"), lambda: chat("A", "end"), "A"),
    "a child of a parallel is gone": (
        lambda: Parallel(name="P", sub_agents=[says("A"), worker()]),
        lambda: Parallel(name="P", sub_agents=[worker(script=["end"])]),
        "P",
    ),
    "the tool that waits is gone": (
        lambda: worker(),
        lambda: worker(script=["end"], tools=(other,)),
        "ask",
    ),
    "the sub-agent that waits is gone": (
        lambda: chat("R", to("W"), sub_agents=[worker(), says("B")]),
        lambda: chat("R", "end", sub_agents=[says("B")]),
        "W",
    ),
    "the agent in a tool is gone": (
        lambda: chat("O", ToolCalls(W={"request": "r"}), tools=[worker().as_tool()]),
        lambda: chat("O", "end", tools=[other]),
        "W",
    ),
    "the agent in a tool is another one": (
        lambda: chat("O", ToolCalls(W={"request": "r"}), tools=[worker().as_tool()]),
        lambda: chat("O", "end", tools=[worker("X", script=["end"]).as_tool(name="W")]),
        "W",
    ),
    "the tool in the agent in a tool is gone": (
        lambda: chat("O", ToolCalls(W={"request": "r"}), tools=[worker().as_tool()]),
        lambda: chat("O", "end", tools=[worker(script=["end"], tools=(other,)).as_tool()]),
        "ask",
    ),
}


@pytest.mark.parametrize(("before", "after", "named"), INCOMPATIBLE.values(), ids=INCOMPATIBLE)
def test_a_tree_that_has_not_is_refused_and_nothing_is_lost(before, after, named):
    stage = Stage(before())
    stage.start()
    changed = after()
    with pytest.raises(CheckpointError, match=named):
        Runner(changed, store=stage.store).resume(stage.id, data="x").result(3)
    assert len(getattr(getattr(changed, "model", None), "requests", ())) == 0
    # With the tree that it had, it goes on.
    assert Runner(before(), store=stage.store).resume(stage.id, data="x").result(20).error is None


def test_the_error_carries_the_run_and_the_agent():
    stage = Stage(Sequential(name="Shop", sub_agents=[worker("Till")]))
    interrupted = stage.start(checkpoint_id="order-7")
    with pytest.raises(CheckpointError, match="Till") as caught:
        Runner(Sequential(name="Shop", sub_agents=[]), store=stage.store).resume("order-7").result(
            20
        )
    assert caught.value.agent in {"Till", "Shop"}
    assert caught.value.run == interrupted.events[0].run_id


class Casts(Agent):
    """Has an agent play that stands in no tree: what has become of that one shows only when it is
    cast again.
    """

    def __init__(self, child):
        super().__init__(name="C")
        self.child = child

    async def run(self, input, context):
        outcome = await context.cast(self.child)
        if outcome.kind == "finished":
            yield AgentEvent.say(f"{self.child.name} has ended")


def test_an_agent_that_was_cast_from_outside_of_the_tree_goes_on():
    result = go_on_with(
        Casts(Sequential(name="S", sub_agents=[worker()])),
        Casts(Sequential(name="S", sub_agents=[worker(script=["w ends"])])),
    )
    assert [event.message.text for event in result.events] == ["heard x", "w ends", "S has ended"]


CAST = {
    "below it, the agent that waits is gone": (
        lambda: Sequential(name="S", sub_agents=[worker()]),
        lambda: Sequential(name="S", sub_agents=[]),
    ),
    "below it, somebody else waits": (
        lambda: Sequential(name="S", sub_agents=[worker()]),
        lambda: Sequential(name="S", sub_agents=[worker("X", script=["end"])]),
    ),
    "its tool is gone": (lambda: worker(), lambda: worker(script=["end"], tools=(other,))),
}


@pytest.mark.parametrize(("before", "after"), CAST.values(), ids=CAST)
def test_an_agent_that_was_cast_from_outside_of_the_tree_and_has_changed_fails_and_is_not_passed_over(
    before, after
):
    stage = Stage(Casts(before()))
    stage.start()
    try:
        result = Runner(Casts(after()), store=stage.store).resume(stage.id, data="x").result(3)
    except CheckpointError:
        return
    assert result.status == "failed"
    assert isinstance(result.error, CheckpointError)


# --- types ---


@register_type(name="tests.Question")
@dataclass(frozen=True)
class Question:
    text: str
    choices: tuple[str, ...] = ()


@register_type(name="tests.Choice")
class Choice(BaseModel):
    number: int


class Stranger(BaseModel):
    number: int


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_registered_types_come_back_as_themselves(store_of, kind):
    class Typed(Agent):
        async def run(self, input, context):
            if context.resume is None:
                context.session["q"] = Question("in the session")
                yield context.interrupt(Question("which?", ("a", "b")), state=Question("state"))
            else:
                assert context.resume.state == Question("state")
                assert context.session["q"] == Question("in the session")
                yield AgentEvent.of(custom_output=context.resume.data)

    stage = Stage(Typed(name="A"), store=store_of(kind))
    assert stage.start().interrupts[0].info == Question("which?", ("a", "b"))
    assert stage.go_on(data=Choice(number=2)).final_output == Choice(number=2)


def test_a_type_that_is_not_registered_is_named_where_it_is_given():
    stage = Stage(Asker("A"))
    stage.start()
    with pytest.raises(CheckpointError, match="Stranger"):
        stage.go_on(data=Stranger(number=1))
    assert stage.go_on(data=Choice(number=1)).status == "completed"


PROGRAM = """
import sys
from dataclasses import dataclass
from offbook.actors import Agent
from offbook.runtime import Runner, SQLiteStore, register_type

@register_type(name="elsewhere.Cart")
@dataclass
class Cart:
    items: list

class A(Agent):
    async def run(self, input, context):
        if sys.argv[2] == "session":
            context.session["cart"] = Cart(["book"])
        yield context.interrupt(Cart(["book"]) if sys.argv[2] == "info" else "?", state=Cart(["book"]) if sys.argv[2] == "state" else None)

store = SQLiteStore(sys.argv[1])
assert Runner(A(name="A"), store=store).query("q", checkpoint_id="1").result(20).error is None
store.close()
"""


@pytest.mark.parametrize("where", ["info", "state", "session"])
def test_g09_a_type_that_is_not_registered_here_is_named_and_nothing_runs(tmp_path, where):
    file = tmp_path / "store.db"
    subprocess.run([sys.executable, "-c", PROGRAM, str(file), where], check=True, timeout=60)
    agent = Asker("A")
    store = SQLiteStore(file)
    try:
        with pytest.raises(CheckpointError, match=r"elsewhere\.Cart"):
            Runner(agent, store=store).resume("1", data="x").result(20)
    finally:
        store.close()
    assert agent.inputs == []


def test_a_run_that_was_kept_by_another_agent_is_not_taken_for_one_of_this():
    store = MemoryStore()
    Runner(Asker("A"), store=store).query("q", checkpoint_id="1").result(20)
    stranger = ChatModelAgent(name="B", model=ScriptedModel(["never"]))
    with pytest.raises(CheckpointError, match="A"):
        Runner(stranger, store=store).resume("1").result(20)
    assert stranger.model.requests == []
