"""The conversation in the terminal, with what somebody types there."""

import io
import json
import subprocess
import sys

import pytest

from offbook.actors.swarm import Agent, repl, run_demo_loop
from offbook.actors.swarm.repl import pretty_print_messages, process_and_print_streaming_response
from tests.doubles.swarm_clients import AsyncScriptedClient, ScriptedClient, call, reply

BLUE, PURPLE, GREY, END = "\033[94m", "\033[95m", "\033[90m", "\033[0m"


def sales():
    return Agent(name="Sales", functions=[offer])


def offer(item, context_variables):
    return f"{item} for {context_variables['user']}"


@pytest.mark.parametrize("kind", [ScriptedClient, AsyncScriptedClient])
@pytest.mark.parametrize("stream", [False, True])
def test_a_conversation_goes_on_with_who_is_active_until_the_input_ends(
    stream, kind, monkeypatch, capsys
):
    client = kind(
        reply("", call("sales")),
        "What?",
        reply("", call("offer", item="tea"), call("offer", "c2", item="cups")),
        "Here it is.",
    )
    monkeypatch.setattr(sys, "stdin", io.StringIO("Sales, please\ntea\n"))
    with pytest.raises(EOFError):
        run_demo_loop(
            Agent(name="Triage", functions=[sales]),
            context_variables={"user": "Ada"},
            stream=stream,
            client=client,
        )
    out = capsys.readouterr().out
    assert out.startswith("Starting Swarm CLI 🐝\n")
    assert out.count(f"{GREY}User{END}: ") == 3
    if stream:
        parts = [
            f"{BLUE}Triage: {PURPLE}sales{END}()",
            f"{BLUE}Sales:{END} What?\n",
            f"{BLUE}Sales: {PURPLE}offer{END}()",
            f"{BLUE}Sales:{END} Here it is.\n",
        ]
    else:
        calls = f'\n{PURPLE}offer{END}("item"= "tea")\n{PURPLE}offer{END}("item"= "cups")\n'
        parts = [
            f"{BLUE}Triage{END}: {PURPLE}sales{END}()\n",
            f"{BLUE}Sales{END}: What?\n",
            f"{BLUE}Sales{END}: {calls}",
            f"{BLUE}Sales{END}: Here it is.\n",
        ]
    at = 0
    for part in parts:
        assert part in out[at:], repr(out)
        at = out.index(part, at) + len(part)
    last = client.requests[-1]["messages"]
    assert [message["role"] for message in last] == [
        "system",
        "user",
        "assistant",
        "tool",
        "assistant",
        "user",
        "assistant",
        "tool",
        "tool",
    ]
    assert last[-1]["content"] == "cups for Ada"


def test_without_a_client_it_makes_swarm_s_own(monkeypatch):
    made = []

    class Mine(repl.Swarm):
        def __init__(self):
            made.append(True)
            super().__init__(ScriptedClient("Hi!"))

    monkeypatch.setattr(repl, "Swarm", Mine)
    monkeypatch.setattr("builtins.input", lambda prompt: raise_if(made))
    with pytest.raises(KeyboardInterrupt):
        run_demo_loop(Agent())


def raise_if(made):
    if len(made) > 1:
        raise KeyboardInterrupt
    made.append(True)
    return "Hello"


def test_messages_of_others_are_not_printed(capsys):
    pretty_print_messages(
        [
            {"role": "user", "content": "Hi"},
            {"role": "tool", "content": "x"},
            {"role": "assistant", "sender": "A", "content": "Hello"},
        ]
    )
    assert capsys.readouterr().out == f"{BLUE}A{END}: Hello\n"


def test_a_stream_without_a_response_gives_none(capsys):
    assert (
        process_and_print_streaming_response(
            [{"delim": "start"}, {"sender": "A", "content": "x"}, {"delim": "end"}]
        )
        is None
    )
    assert capsys.readouterr().out == f"{BLUE}A:{END} x\n"


def test_actors_are_imported_without_swarm_and_openai():
    code = (
        "import sys, json, offbook.actors; print(json.dumps([name for name in sys.modules if "
        "'openai' in name.split('.') or 'swarm' in name]))"
    )
    assert (
        json.loads(
            subprocess.run(
                [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
            ).stdout
        )
        == []
    )
