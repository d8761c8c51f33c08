"""Agents in a notebook: a real kernel, whose loop runs in the thread of the cells."""

import pytest

from tests.doubles.notebook import notebook

DEFINITIONS = """
from offbook.actors import ChatModelAgent, Sequential
from offbook.runtime import MemoryStore, Runner, ScriptedModel
from offbook.runtime.observe import graph

def agent(*lines, name="A"):
    return ChatModelAgent(name=name, model=ScriptedModel(lines))
"""


@pytest.mark.slow
def test_agents_run_in_the_cells_of_a_notebook(tmp_path):
    ask = "print((await session.query('?')).text, len(await session.history()))"
    shown = notebook(
        [
            DEFINITIONS,
            "(await Runner(agent('hello')).query('?')).text",
            "async for event in Runner(agent('two words')).query('?', streaming=True): "
            "print(repr(event.text))",
            "run = Runner(agent('later')).query('?')",
            "run.text",
            "Runner(agent('x')).query('?').result()",
            "for event in Runner(agent('x')).query('?'): print(event)",
            "(await run).text",
            "(await run).text",  # the same cell again
            "session = Runner(agent('one', 'two'), store=MemoryStore()).session('s')",
            ask,
            ask,  # executed again, it is another turn
            DEFINITIONS,  # and so is the first one
            "(await Runner(agent('hello again')).query('?')).text",
            "team = Sequential(name='team', sub_agents=[agent(name='first'), "
            "agent(name='second')])",
            "forms, _ = get_ipython().display_formatter.format(graph(team)); "
            "forms['image/svg+xml'].startswith('<svg'), 'second' in forms['image/svg+xml']",
            "async for result in Runner(agent('1', '2')).map(['a', 'b'], progress=False): "
            "print(result.text)",
        ],
        tmp_path,
    )
    assert shown[:4] == ["", "'hello'", "'two'\n' words'\n'two words'", ""]
    assert "Write `(await run).text`" in shown[4]
    assert shown[5].endswith("Write `await run`.")
    assert shown[6].endswith("Write `async for event in run`.")
    assert shown[7:12] == ["'later'", "'later'", "", "one 2", "two 4"]
    assert shown[12:] == ["", "'hello again'", "", "(True, True)", "1\n2"]
