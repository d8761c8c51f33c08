"""What nearly all runs do is done at a glance: with the result that the long way has, and with nothing left when the run has ended."""

import asyncio
import gc
import json

import pytest
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

from understudy.actors.agents_sdk import Agent, Model, ModelResponse, RunConfig, Runner, Usage, handoff
from understudy.actors.agents_sdk.items.history import complete
from understudy.actors.agents_sdk.items.kinds import dumped


class Says(Model):
    """A model that answers with these items."""

    def __init__(self, *output):
        self.output = list(output)

    async def get_response(self, *args, **named):
        return ModelResponse(list(self.output), Usage(), None)

    def stream_response(self, *args, **named):
        raise NotImplementedError


def message(text):
    content = [ResponseOutputText(type="output_text", text=text, annotations=[])]
    return ResponseOutputMessage(id="m", type="message", role="assistant", status="completed", content=content)


def call(name, **more):
    return ResponseFunctionToolCall(type="function_call", call_id="c1", name=name, arguments="{}", **more)


def asked(call_id, **more):
    return {"type": "function_call", "call_id": call_id, "name": "f", "arguments": "{}", **more}


def answered(call_id):
    return {"type": "function_call_output", "call_id": call_id, "output": "x"}


def test_a_run_with_a_handoff_leaves_nothing_to_the_garbage_collector():
    last = Agent("last", model=Says(message("done")))
    first = Agent("first", model=Says(call("transfer_to_last")), handoffs=[last])

    async def main():
        config = RunConfig(tracing_disabled=True)
        await Runner.run(first, "hi", run_config=config)
        gc.collect()
        gc.disable()
        try:
            gc.set_debug(gc.DEBUG_SAVEALL)
            result = await Runner.run(first, "hi", run_config=config)
            text = result.final_output
            del result
            gc.collect()
            return text, [type(one).__name__ for one in gc.garbage]
        finally:
            gc.set_debug(0)
            gc.garbage.clear()
            gc.enable()

    assert asyncio.run(main()) == ("done", [])


def test_many_runs_at_once_on_one_definition_keep_to_themselves():
    class Repeats(Model):
        async def get_response(self, system, given, *args, **named):
            await asyncio.sleep(0)
            return ModelResponse([message(given[0]["content"])], Usage(requests=1), None)

        def stream_response(self, *args, **named):
            raise NotImplementedError

    async def main():
        agent = Agent("a", model=Repeats())
        return await asyncio.gather(*(Runner.run(agent, str(number)) for number in range(500)))

    results = asyncio.run(main())
    assert [result.final_output for result in results] == [str(number) for number in range(500)]
    assert {result.context_wrapper.usage.requests for result in results} == {1}


@pytest.mark.parametrize(
    "more", [{}, {"id": "f1", "status": "completed"}, {"namespace": "n"}, {"caller": None}, {"unknown": [1]}, {"caller": {"type": "direct"}}]
)
def test_a_call_as_input_is_what_a_dump_of_it_is(more):
    one = call("f", **more)
    assert dumped(one) == one.model_dump(exclude_unset=True)
    assert list(dumped(one)) == list(one.model_dump(exclude_unset=True))


@pytest.mark.parametrize(
    ("items", "left"),
    [
        ([asked("1"), answered("1")], [0, 1]),
        ([answered("1")], [0]),
        ([asked("1"), asked("2"), answered("1")], [0, 2]),
        ([{"type": "reasoning", "id": "r"}, asked("1")], []),
        ([asked(None), answered(None)], [1]),
        ([{"type": "shell_call", "call_id": "1"}, answered("1")], [1]),
        ([{"role": "user", "content": "hi"}, asked("1", caller={"type": "program", "caller_id": "p"}), answered("1")], [0, 1, 2]),
    ],
)
def test_a_history_is_given_to_the_model_without_calls_that_have_no_result(items, left):
    assert complete(items) == [items[index] for index in left]


@pytest.mark.parametrize("name", ["b", 'Über "x"', "日本"])
def test_the_text_of_a_handoff_is_json_that_names_the_agent(name):
    agent = Agent(name)
    assert handoff(agent, "to_b").get_transfer_message(agent) == json.dumps({"assistant": name})
