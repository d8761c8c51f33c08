"""The examples: each is short, and runs as it stands: without a key, by the replies that it has written down; with one, against a server that speaks OpenAI's."""

import ast
import asyncio
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from .programs import openai_wire as wire

EXAMPLES = Path(__file__).parents[1] / "examples"
HELPERS = {"models", "show"}
LONGEST = 60

# What they print, in this order, possibly with more between.
SAID = {
    "agent_as_tool": [
        '[Writer] calls translator({"request":"The show goes on."})',
        "[translator] Le spectacle",
        "[Writer] translator -> Le",
        "[Writer] The show goes on. /",
    ],
    "books": ['[BookRecommender] calls search_books({"genre":"fantasy","max_pages":400})', '-> ["The Hobbit"]', "[BookRecommender] Read The Hobbit"],
    "custom_agent": ["[Author] The curtain rises", "[WordCounter] That makes 5 words.", "'words': 5"],
    "deterministic_transfer": ["[Author] It is going to rain", "[Author] TransferToAgent(agent_name='Editor')", "[Editor] Rain, all day."],
    "from_a_script": ["['shot-0.png', 'shot-1.png', 'shot-2.png']"],
    "hello": ["Hello! I am Hello"],
    "layered_supervisor": [
        "[Searcher] 29.2",
        "[Divider] divide -> 7.8767",
        "[Multiplier] multiply -> 12.5161",
        "[MathLead] It is 12.5161.",
        "[Boss] New York has 7.88 %",
    ],
    "loop": [
        "[Author] A multimodal",
        "[Critic] Which things",
        "[Author] A multimodal",
        "[Critic] approve -> approved",
        "BreakLoop(by='Critic', done=True, iteration=1)",
    ],
    "multi_agent": ["[Weather] get_weather -> 25°C", "[Weather] It is sunny in Paris", "[Food] Try", "[Router] I am sorry, nobody here can book flights."],
    "parallel": ["[Stocks] The index", "[Summary] Hope for lower rates"],
    "plan_execute": ['[planner] {"steps"', "[executor] CA 982", '[replanner] {"steps"', "[executor] Lotus Inn", "iteration=1)", "[replanner] Fly with CA 982"],
    "project_manager": [
        "[ResearchAgent] A loop",
        "[CodeAgent] while True",
        "[QuestionAnalysis]",
        "[GenerateReview]",
        "[ReviewValidation]",
        "[ProjectManager] Here is a first version",
    ],
    "sequential": ["[Planner] 1. What happened today", "[Writer] Shares rose"],
    "session_values": ['[Listener] calls set_user_name({"name":"Alice"})', "[Greeter] Welcome, Alice!", "{'user_name': 'Alice', 'user_age': 18}"],
    "streaming": ["An actor waits behind the door,\nshe knows", "in 24 pieces)"],
    "supervised_workers": ["of 20 done in"],
    "supervisor": [
        "[SearchAgent] search_gdp -> 29.2",
        "[SearchAgent] TransferToAgent(agent_name='Supervisor')",
        "[MathAgent] divide -> 0.0788",
        "[Supervisor] New York's share",
    ],
    "transfer": ["> What's the weather", "[WeatherAgent] get_weather -> the temperature in Beijing is 25°C", "> Book me a flight", "[RouterAgent] I am sorry"],
}
OF_ACTORS = {"from_a_script", "service", "supervised_workers"}
OF_AGENTS = sorted(SAID.keys() - OF_ACTORS)


def without_keys(**more):
    """The environment of whoever runs the tests, without what it says of models."""
    about_models = re.compile(r".*_API_KEY|OPENAI_.*|ARK_.*|AZURE_.*|MODEL_TYPE|.*_proxy|PYTHONWARNINGS", re.IGNORECASE)
    return {name: value for name, value in os.environ.items() if not about_models.fullmatch(name)} | more


def call(*arguments, cwd):
    command = [sys.executable, "-W", "error", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=cwd, env=without_keys(), timeout=50)


def assert_in_order(parts, text):
    at = 0
    for part in parts:
        assert part in text[at:], f"{part!r} is missing in:\n{text[at:]}"
        at = text.index(part, at) + len(part)


def test_every_example_is_known_here():
    assert {path.stem for path in EXAMPLES.glob("*.py")} == {*SAID, *HELPERS, "service"}


@pytest.mark.parametrize("name", sorted(OF_AGENTS) + sorted(HELPERS))
def test_an_example_is_short(name):
    assert len((EXAMPLES / f"{name}.py").read_text().splitlines()) < LONGEST


@pytest.mark.parametrize("name", sorted({*SAID, "service"}))
def test_an_example_imports_what_users_import_and_says_how_it_is_run(name):
    tree = ast.parse((EXAMPLES / f"{name}.py").read_text())
    modules = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert {module for module in modules if module.startswith("understudy")} <= {"understudy.actors", "understudy.runtime"}
    assert f"python examples/{name}.py" in (ast.get_docstring(tree) or "")


@pytest.mark.parametrize("name", sorted(SAID))
def test_an_example_runs_without_a_key(name, tmp_path):
    done = call(EXAMPLES / f"{name}.py", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert_in_order(SAID[name], done.stdout)
    if name in OF_AGENTS:
        assert "failed" not in done.stdout
        assert done.stderr.startswith("(The replies are scripted. No model:")
        assert done.stderr.count("\n") == 2, "one notice, whatever the number of agents, and no warning"


def test_a_key_without_a_model_is_told(tmp_path):
    (tmp_path / ".env").write_text("OPENAI_API_KEY=x\n")
    done = call(EXAMPLES / "hello.py", cwd=tmp_path)
    assert done.returncode == 0
    assert "OPENAI_MODEL is not set" in done.stderr


def test_the_service_answers(tmp_path):
    program = """if True:
        import asyncio, sys
        sys.path.insert(0, sys.argv[1])
        import httpx, service

        async def main():
            async with service.lifespan(service.app), httpx.AsyncClient(transport=httpx.ASGITransport(service.app), base_url="http://here") as client:
                for _ in range(2):
                    print((await client.post("/sessions/ada")).json())
                print((await client.get("/stats")).json()["handled"] > 0)

        asyncio.run(main())
    """
    done = call("-c", program, EXAMPLES, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["{'session': 'ada', 'requests': 1}", "{'session': 'ada', 'requests': 2}", "True"]


async def director(one):
    """Plays every part of the examples: calls the first tool once, hands over to the first agent that there is, plans one step, and says back what it was told."""
    body = one.seen.body
    names = [tool["function"]["name"] for tool in body.get("tools", [])]
    arguments = {}
    if "respond" in names:
        arguments = {"respond": {"response": "done"}}
    elif "plan" in names:
        arguments = {"plan": {"steps": ["do it"]}}
    elif names[:1] == ["transfer_to_agent"]:
        arguments = {"transfer_to_agent": {"agent_name": re.search(r"Agent name: (.+)", body["messages"][0]["content"])[1]}}
    if not arguments or any(message["role"] == "tool" for message in body["messages"]):
        await wire.echo(one)
        return
    ((name, given),) = arguments.items()
    await wire.reply(one, wire.completion(None, calls=[wire.call(name, json.dumps(given))]))


# One process for all, because it takes the client longer to be imported than all of them to run.
ALL_OF_THEM = """if True:
    import runpy, sys
    sys.path.insert(0, sys.argv[1])
    for name in sys.argv[2:]:
        print(f"=== {name}", flush=True)
        runpy.run_path(f"{sys.argv[1]}/{name}.py", run_name="__main__")
"""


async def played_with_a_key(folder):
    async with wire.WireServer(director) as server:
        env = without_keys(OPENAI_API_KEY="the-key", OPENAI_MODEL="the-model", OPENAI_BASE_URL=server.url)
        command = [sys.executable, "-W", "error", "-c", ALL_OF_THEM, str(EXAMPLES), *OF_AGENTS]
        process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE, cwd=folder, env=env)
        try:
            out, err = await asyncio.wait_for(process.communicate(), 50)
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        return process.returncode, out.decode(), err.decode(), server.seen


def test_the_examples_run_with_a_key(run, tmp_path):
    code, out, err, seen = run(played_with_a_key(tmp_path))
    assert code == 0, err
    assert "scripted" not in err
    assert "Traceback" not in err
    shown = dict(part.split("\n", 1) for part in out.split("=== ")[1:])
    assert sorted(shown) == OF_AGENTS
    assert {name: text for name, text in shown.items() if not text.strip() or "failed" in text} == {}
    assert {one.headers["authorization"] for one in seen} == {"Bearer the-key"}
    assert {one.body["model"] for one in seen} == {"the-model"}
