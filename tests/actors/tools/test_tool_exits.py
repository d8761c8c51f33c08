"""A tool that raises `GeneratorExit` has failed, as with anything else that it raises."""

import pytest

from offbook.actors import ChatModelAgent, tool
from offbook.runtime import Runner, ScriptedModel, ToolCalls


@pytest.mark.parametrize("calls", [1, 2])
@pytest.mark.parametrize("kind", ["def", "async def", "async def that awaits"])
def test_a_generator_exit_is_an_ordinary_failure_of_its_tool(run, calls, kind):
    @tool(name="bad")
    def plain() -> str:
        raise GeneratorExit

    @tool(name="bad")
    async def on_the_loop() -> str:
        raise GeneratorExit

    async def further_down():
        raise GeneratorExit

    @tool(name="bad")
    async def awaits() -> str:
        await further_down()
        return "x"

    made = {"def": plain, "async def": on_the_loop, "async def that awaits": awaits}[kind]

    async def main():
        model = ScriptedModel([ToolCalls(*(("bad", {}) for _ in range(calls))), "told"])
        return await Runner(ChatModelAgent(name="A", model=model, tools=[made])).query("go")

    result = run(main())
    assert result.final_output == "told"
    texts = [event.message.text for event in result.events if event.message.role == "tool"]
    assert len(texts) == calls
    assert all(
        text.startswith("tool bad failed: ") and text.endswith("GeneratorExit") for text in texts
    )
