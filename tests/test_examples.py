"""The examples: each is short, and runs as it stands: without a key, by the replies that it has
written down; with one, against a server that speaks OpenAI's.
"""

import ast
import asyncio
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.programs import openai_wire as wire

EXAMPLES = Path(__file__).parents[1] / "examples"
HELPERS = {"models", "serving", "show", "swarm_client", "voice_line"}
# They run until they are stopped: each has a test of its own.
SERVED = {"service", "voice_browser", "voice_phone"}

# What they print, in this order, possibly with more between.
SAID = {
    "a2a_services": [
        "[concierge] waits: May reserve be called with",
        "> May reserve be called with",
        "approve",
        "[concierge] Your evening is arranged: two seats.",
    ],
    "a2a_supervisor": [
        "[Theatre] waits: Which size?",
        "(everything is started anew)",
        "> Which size? 42",
        "[Theatre] A red cloak, size 42.",
        "[Theatre] Your costume hangs in the wardrobe.",
    ],
    "a2a_task": [
        "card: Poet - writes poems",
        "status: working I am thinking of a rhyme",
        "artifact: poem 'The curtain falls, '",
        "artifact: poem 'the evening ends.' (the last piece)",
        "status: completed",
        "server: told to stop a long poem",
        "cancelled: canceled",
        "and so it is: canceled",
    ],
    "agents_sdk_durable": [
        "ended with -9",
        "run trip-1 has ended: Your trip to Oslo is booked.",
        "flight to Oslo booked",
        "hotel in Oslo booked",
    ],
    "agent_as_tool": [
        '[Writer] calls translator({"request":"The show goes on."})',
        "[translator] Le spectacle",
        "[Writer] translator -> Le",
        "[Writer] The show goes on. /",
    ],
    "books": [
        "[BookRecommender] waits: Which genre do you like",
        "> Which genre do you like, and how long may it be? fantasy, 400 pages at most",
        "[BookRecommender] ask_for_clarification -> fantasy, 400 pages at most",
        '[BookRecommender] calls search_books({"genre":"fantasy","max_pages":400})',
        '-> ["The Hobbit"]',
        "[BookRecommender] Read The Hobbit",
    ],
    "conversation": [
        "[Guide] I was told 1 things, of which the first was: I am on my way to Rome.",
        "[Guide] I was told 2 things, of which the first was: I am on my way to Rome.",
        "in turn: I was told 3 things, of which the first was: I am on my way to Rome.",
        "in turn: I was told 3 things, of which the first was: Where was I going?",
        "rejected: session 'user-42' is running another turn",
        "not disturbed: I was told 3 things",
        "preempted: run cancelled: a newer message of its session goes first",
        "in its place: I was told 3 things",
        "13 messages, {'name': 'Ada'}",
    ],
    "custom_agent": [
        "[Author] The curtain rises",
        "[WordCounter] That makes 5 words.",
        "'words': 5",
    ],
    "customer_service": [
        '[Triage] calls transfer_to_billing({"issue":"charged twice","priority":"high"})',
        "[Triage] TransferToAgent(agent_name='Billing')",
        "[Billing] You wrote: My card [CARD] was charged twice. You get",
        "[Triage] TransferToAgent(agent_name='Technical')",
        "[Technical] TransferToAgent(agent_name='Engineering')",
        "[Engineering] A bad deployment",
        "22:00 >",
        "[Triage] Billing is there from nine to five.",
        "level 1, Billing: charged twice (high)",
        "level 1, Technical: errors since noon (high)",
        "level 2, Engineering: the API answers 500 (high)",
    ],
    "deterministic_transfer": [
        "[Author] It is going to rain",
        "[Author] TransferToAgent(agent_name='Editor')",
        "[Editor] Rain, all day.",
    ],
    "from_a_script": ["['shot-0.png', 'shot-1.png', 'shot-2.png']"],
    "hello": ["Hello! I am Hello"],
    "layered_supervisor": [
        "[Searcher] search -> In 2024",
        "[Searcher] TransferToAgent(agent_name='Boss')",
        "[Divider] divide -> 7.8718",
        "[Divider] TransferToAgent(agent_name='MathLead')",
        "[Multiplier] multiply -> 12.5054",
        "[MathLead] 7.87 %, and 12.5054.",
        "[MathLead] TransferToAgent(agent_name='Boss')",
        "[Boss] New York has 7.87 %",
        "pieces: New York has 7.87 %; times 1.589, that makes 12.5054.",
    ],
    "loop": [
        "[Author] A multimodal",
        "[Critic] Which things",
        "[Author] A multimodal",
        "[Critic] approve -> approved",
        "BreakLoop(by='Critic', done=True, iteration=1)",
    ],
    "multi_agent": [
        "[Weather] get_weather -> 25°C",
        "[Weather] It is sunny in Paris",
        "[Food] Try",
        """[Travel] waits: ApprovalRequest(tool_name='book_flight', arguments='{"city":"Paris"}')""",
        "> Shall I? (yes/no) yes",
        "[Travel] book_flight -> flight UA 7 to Paris is booked",
        "[Travel] Your flight to Paris is booked",
    ],
    "parallel": ["[Stocks] The index", "[Summary] Hope for lower rates"],
    "payment": [
        "process 1 asks:",
        "[Accountant] waits: ApprovalRequest(tool_name='pay'",
        "process 2 is told yes, and is killed before the bank has booked:",
        "process 3 recovers, and is killed after the bank has booked:",
        "  the bank: booked",
        "process 4 recovers:",
        "  the bank: I have booked that already",
        "[Accountant] pay -> paid",
        "[Accountant] Invoice 7 is paid.",
        "the bank's bookings: ['120 euros for invoice 7']",
    ],
    "plan_execute": [
        '[planner] {"steps"',
        "[executor] CA 982",
        '[replanner] {"steps"',
        "[executor] Lotus Inn",
        "iteration=1)",
        "[replanner] Fly with CA 982",
    ],
    "project_manager": [
        "[ResearchAgent] waits: Web or terminal?",
        "[ResearchAgent] ask_for_clarification -> terminal",
        "[ResearchAgent] web_search -> 3 results",
        "[ResearchAgent] waits: Which model?",
        "[ResearchAgent] ask_for_clarification -> a small one that runs here",
        "[ResearchAgent] A loop",
        "[CodeAgent] while True",
        "[QuestionAnalysis]",
        "[GenerateReview]",
        "[ReviewValidation]",
        "[ProjectManager] Here is a first version",
    ],
    "reminders": [
        "[Office] waits: ApprovalRequest(tool_name='pay', arguments='{\"invoice\":7}')",
        "[Office] pay -> the call of pay was denied: nobody approved it within 0.3 s",
        "a reminder:",
        "[Office] I was told: Ada wants to see the bill now.",
        "a schedule:",
        "[Office] I was told: Write the report.",
        "removed: True",
    ],
    "sequential": ["[Planner] 1. What happened today", "[Writer] Shares rose"],
    "restaurants": [
        '[Gourmet] calls query_restaurants({"location":"Haidian","topn":2})',
        "[Gourmet] query_restaurants -> [",
        '[Gourmet] calls query_dishes({"restaurant_id":"1001"})',
        '[Gourmet] calls query_dishes({"restaurant_id":"1002"})',
        "[Gourmet] query_dishes -> [",
        "[Gourmet] query_dishes -> [",
        "[Gourmet] At Chuan Ban",
    ],
    "session_values": [
        '[Listener] calls set_user_name({"name":"Alice"})',
        "[Listener] set_user_age -> Alice is 18",
        "[Greeter] Welcome, Alice!",
        "{'user_name': 'Alice', 'user_age': 18}",
    ],
    "steering": [
        "[Travel] calls search_trips(",
        "(post 1 is stored)",
        "(withdrawn: True)",
        "[Travel] search_trips -> Vienna: a flight at nine, a train at ten",
        "[Travel] By train, please.",
        "[Travel] I was asked: Plan a trip to Vienna. By train, please.",
        "(the model has answered: the next turn hears this post)",
        "[Travel] And a hotel near the station.",
        "[Travel] I was asked: Plan a trip to Vienna. By train, please. And a hotel near the",
        "(posts that nobody has heard: 0)",
    ],
    "streaming": ["An actor waits behind the door,\nshe knows", "in 24 pieces)"],
    "supervised_workers": ["of 20 done in"],
    "supervisor": [
        "[SearchAgent] search_gdp -> 29.2",
        "[SearchAgent] TransferToAgent(agent_name='Supervisor')",
        "[MathAgent] divide -> 0.0788",
        "[Supervisor] New York's share",
    ],
    "support_routine": [
        "[Support] What is wrong with it?",
        "[Support] Try to rub a candle",
        "[Support] I am sorry; shall I refund it?",
        "> You: Yes, please.",
        '[Support] calls look_up_item({"search_query":"cash drawer"})',
        "[Support] look_up_item -> item_132612938",
        "[Support] execute_refund -> success",
        "[Support] Your money is on its way.",
        "refunded: {'item_132612938': 'it sticks'}",
    ],
    "swarm_airline": [
        "Triage Agent\033[0m: \033[95mtransfer_to_flight_modification\033[0m()",
        'Flight Change Agent\033[0m: \033[95mchange_flight\033[0m("day"= "May 22")',
        "Flight Change Agent\033[0m: You fly on May 22.",
        "Flight Change Agent\033[0m: \033[95mtransfer_to_triage",
        "Lost Baggage Agent\033[0m: Your bag is in Denver.",
        "Lost Baggage Agent {'customer': 'Ada Lovelace, a premium customer', 'flight': "
        "'flight 1919 from New York to Los Angeles on May 22'}",
    ],
    "swarm_shopper": [
        "Refunds: \033[95mrefund_item",
        "Refunds:\033[0m You get $19.99 back",
        "Sales: \033[95morder_item",
        "'refunded: $19.99', 'notified by email'",
        "[(1, 7, 19.99), (1, 8, 29.99)]",
    ],
    "transfer": [
        "> What's the weather",
        "[WeatherAgent] get_weather -> the temperature in Beijing is 25°C",
        "> Book me a flight",
        "[RouterAgent] I am sorry",
    ],
    "voice_desk": [
        "(triage hands over to billing)",
        "approved)",
        "40 euros are on their way.",
        "--- another process ---",
        "assistant: Welcome back.",
    ],
}
# Without a model, or with one of their own.
OF_ACTORS = {"a2a_task", "agents_sdk_durable", "from_a_script", "supervised_workers", "voice_desk"}
OF_AGENTS = sorted(SAID.keys() - OF_ACTORS)
OF_OTHERS = ("swarm", "swarm.repl", "realtime", "realtime.local")


def without_keys(**more):
    """The environment of whoever runs the tests, without what it says of models."""
    about_models = re.compile(
        r".*_API_KEY|OPENAI_.*|ARK_.*|AZURE_.*|MODEL_TYPE|.*_proxy|PYTHONWARNINGS", re.IGNORECASE
    )
    return {
        name: value for name, value in os.environ.items() if not about_models.fullmatch(name)
    } | more


def call(*arguments, cwd):
    command = [sys.executable, "-W", "error", *map(str, arguments)]
    env = without_keys(PYTHONWARNINGS="error")  # for the processes that an example starts
    return subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        cwd=cwd,
        env=env,
        timeout=50,
    )


def assert_in_order(parts, text):
    at = 0
    for part in parts:
        assert part in text[at:], f"{part!r} is missing in:\n{text[at:]}"
        at = text.index(part, at) + len(part)


def test_every_example_is_known_here():
    assert {path.stem for path in EXAMPLES.glob("*.py")} == {*SAID, *HELPERS, *SERVED}


@pytest.mark.parametrize("name", sorted({*SAID, *SERVED}))
def test_an_example_imports_what_users_import_and_says_how_it_is_run(name):
    tree = ast.parse((EXAMPLES / f"{name}.py").read_text())
    modules = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    public = {
        "offbook",
        "offbook.agents_sdk",
        "offbook.actors",
        "offbook.runtime",
        "offbook.runtime.a2a",
        *(f"offbook.actors.{one}" for one in OF_OTHERS),
    }
    assert {module for module in modules if module.startswith("offbook")} <= public
    assert f"python examples/{name}.py" in (ast.get_docstring(tree) or "")


@pytest.mark.parametrize("name", sorted(SAID))
def test_an_example_runs_without_a_key(name, tmp_path):
    done = call(EXAMPLES / f"{name}.py", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert_in_order(SAID[name], done.stdout)
    if name in OF_AGENTS:
        assert "failed" not in done.stdout
        assert done.stderr.startswith("(The replies are scripted. No model:")
        # A machine that is busy with something else may hold the loop for long, which is logged.
        lines = [line for line in done.stderr.splitlines() if "must not block" not in line]
        assert len(lines) == 2, "one notice, whatever the number of agents, and no warning"


def test_a_key_without_a_model_is_told(tmp_path):
    (tmp_path / ".env").write_text("OPENAI_API_KEY=x\n")
    done = call(EXAMPLES / "hello.py", cwd=tmp_path)
    assert done.returncode == 0
    assert "OPENAI_MODEL is not set" in done.stderr


@pytest.mark.parametrize(
    ("name", "answer", "told"),
    [("books", "mystery", "ask_for_clarification -> mystery"), ("multi_agent", "no", "was denied")],
)
def test_an_example_that_runs_in_a_terminal_asks_there(name, answer, told, tmp_path):
    program = """if True:
        import io, runpy, sys
        sys.stdin = io.StringIO(sys.argv[2])
        sys.stdin.isatty = lambda: True
        sys.path.insert(0, sys.argv[1].rpartition("/")[0])
        runpy.run_path(sys.argv[1], run_name="__main__")
    """
    done = call("-c", program, EXAMPLES / f"{name}.py", f"{answer}\n", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert told in done.stdout


# The service, with a model that answers when it may, and once calls its tool.
SERVICE = """if True:
    import asyncio, os, sys
    sys.path.insert(0, sys.argv[1])
    import httpx, service
    from offbook.actors import ChatModelAgent
    from offbook.runtime import Message, ScriptedModel, ToolCalls

    asked, gate = asyncio.Event(), asyncio.Event()

    async def slow(request):
        asked.set()
        await gate.wait()
        return ToolCalls(opening_hours={"day": "Sunday"})

    async def let_it_answer():
        while service.app.state.runner.system.state.value != "draining":
            await asyncio.sleep(0)
        gate.set()

    def client():
        return httpx.AsyncClient(transport=httpx.ASGITransport(service.app), base_url="http://here")

    def show(reply):
        print(reply.status_code, reply.json())

    async def main():
        async with service.lifespan(service.app), client() as http:
            show(await http.post("/sessions/ada", params={"text": "hello"}))
            print((await http.get("/stats")).json()["handled"] > 0)
        service.agent = ChatModelAgent(name="Shop", tools=[service.opening_hours], model=ScriptedModel([slow, "We are closed."]))
        async with service.lifespan(service.app), client() as http:
            late = asyncio.ensure_future(http.post("/sessions/ada", params={"text": "Open on Sunday?"}))
            await asked.wait()
            answering = asyncio.ensure_future(let_it_answer())
        await answering
        show(await late)
        async with service.lifespan(service.app), client() as http:
            while len((await http.get("/sessions/ada")).json()) < 6:
                await asyncio.sleep(0.01)
            show(await http.get("/sessions/ada"))

    asyncio.run(main())
"""


def test_the_service_answers_comes_to_rest_and_goes_on(tmp_path):
    done = call("-c", SERVICE, EXAMPLES, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    hello, counted, late, history = done.stdout.splitlines()
    assert (hello, counted) == ("200 You said: hello", "True")
    assert late.startswith("503 ")
    assert "drained" in late
    said = [
        "user: hello",
        "assistant: You said: hello",
        "user: Open on Sunday?",
        "assistant: ",
        "tool: closed",
        "assistant: We are closed.",
    ]
    assert history == f"200 {said}"


async def director(one):
    """Plays every part of the examples: calls the first tool once, hands over to the first agent
    that there is, plans one step, and says back what it was told.
    """
    body = one.seen.body
    names = [tool["function"]["name"] for tool in body.get("tools", [])]
    arguments = {}
    if "respond" in names:
        arguments = {"respond": {"response": "done"}}
    elif "plan" in names:
        arguments = {"plan": {"steps": ["do it"]}}
    elif names[:1] == ["transfer_to_agent"]:
        arguments = {
            "transfer_to_agent": {
                "agent_name": re.search(r"Agent name: (.+)", body["messages"][0]["content"])[1]
            }
        }
    if not arguments or any(message["role"] == "tool" for message in body["messages"]):
        await wire.echo(one)
        return
    ((name, given),) = arguments.items()
    await wire.reply(one, wire.completion(None, calls=[wire.call(name, json.dumps(given))]))


# One process for all, because it takes the client longer to be imported than all of them to run.
ALL_OF_THEM = """if True:
    import runpy, sys
    sys.path.insert(0, sys.argv[1])
    folder, *names = sys.argv[1:]
    for name in names:
        print(f"=== {name}", flush=True)
        sys.argv = [f"{folder}/{name}.py"]
        runpy.run_path(sys.argv[0], run_name="__main__")
"""


async def played_with_a_key(folder):
    async with wire.WireServer(director) as server:
        env = without_keys(
            OPENAI_API_KEY="the-key", OPENAI_MODEL="the-model", OPENAI_BASE_URL=server.url
        )
        command = [sys.executable, "-W", "error", "-c", ALL_OF_THEM, str(EXAMPLES), *OF_AGENTS]
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            cwd=folder,
            env=env,
        )
        try:
            out, err = await asyncio.wait_for(process.communicate(), 50)
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        return process.returncode, out.decode(), err.decode(), server.seen


@pytest.mark.slow
def test_the_examples_run_with_a_key(run, tmp_path):
    code, out, err, seen = run(played_with_a_key(tmp_path))
    assert code == 0, err
    assert not re.search("scripted|Traceback", err)
    shown = dict(part.split("\n", 1) for part in out.split("=== ")[1:])
    assert sorted(shown) == OF_AGENTS
    assert {
        name: text for name, text in shown.items() if not text.strip() or "failed" in text
    } == {}
    assert {(one.headers["authorization"], one.body["model"]) for one in seen} == {
        ("Bearer the-key", "the-model")
    }
