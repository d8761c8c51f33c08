"""A typed answer that is read back from a store is of its type where the agent is at hand, and a
JSON value where it is not. It is never a `repr`.
"""

from dataclasses import dataclass
from enum import StrEnum

import pytest
from pydantic import BaseModel, Field

from offbook.actors import Agent, ChatModelAgent
from offbook.runtime import AgentEvent, MemoryStore, Runner, ScriptedModel
from offbook.runtime.console.look_only import LookOnly


class Label(BaseModel):
    label: str = Field(alias="the-label")


@dataclass
class Point:
    x: int


class Kind(StrEnum):
    SPORT = "sport"


CASES = [
    (Label, '{"the-label":"sport"}', Label(**{"the-label": "sport"}), {"the-label": "sport"}),
    (Point, '{"x":3}', Point(3), {"x": 3}),
    (list[Point], '{"response":[{"x":3}]}', [Point(3)], [{"x": 3}]),
    (Kind, '{"response":"sport"}', Kind.SPORT, "sport"),
    (dict[str, int], '{"a":1}', {"a": 1}, {"a": 1}),
]


def make(output_type, text, store, durability):
    return Runner(
        ChatModelAgent(name="A", output_type=output_type, model=ScriptedModel([text])),
        store=store,
        durability=durability,
        keep="all",
    )


@pytest.mark.parametrize("durability", ["interrupt", "step"])
@pytest.mark.parametrize(("output_type", "text", "value", "plain"), CASES)
def test_it_is_rebuilt_from_the_agents_type(
    run, store_of, durability, output_type, text, value, plain
):
    async def main():
        async with store_of("memory") as store:
            first = await make(output_type, text, store, durability).query("q", run_id="r")
            runner = make(output_type, text, store, durability)
            again, followed = await runner.query("q", run_id="r"), await runner.attach("r")
            (mapped,) = [one async for one in runner.map(["q"], key=lambda _: "r", progress=False)]
            looked = (await Runner(LookOnly("A"), store=store, durability="step").life("r")).result
        return [first, again, followed, mapped.result], looked

    results, looked = run(main())
    for result in results:
        assert (type(result.final_output), result.final_output) == (type(value), value)
        assert result.events[-1].custom_output == value
    assert (type(looked.final_output), looked.final_output) == (type(plain), plain)
    assert looked.events[-1].custom_output == plain


def test_an_agent_whose_type_has_changed_leaves_the_json_value(run):
    async def main():
        store = MemoryStore()
        await make(Point, '{"x":3}', store, "step").query("q", run_id="r")
        return await make(Label, "", store, "step").attach("r")

    assert run(main()).final_output == {"x": 3}


def test_what_has_no_json_value_is_no_repr(run):
    class Says(Agent):
        async def run(self, input, context):
            yield AgentEvent.of(AgentEvent.say("done").message, custom_output=object())

    async def main():
        runner = Runner(Says(name="A"), store=MemoryStore(), keep="all")
        await runner.query("q", run_id="r")
        return await runner.query("q", run_id="r")

    assert run(main()).final_output == "done"
