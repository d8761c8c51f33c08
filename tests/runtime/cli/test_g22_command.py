"""G22 in the command: all of a call is shown before it can be approved, and an answer is what was
typed after the question.
"""

import json
import sys

import pytest

from offbook.runtime.shown_text import laid_out, visible
from tests.doubles.commands import Terminal, command

__all__ = ["command"]

BANK = '''
"""A bank for tests of the command."""

import os

from offbook.actors import ChatModelAgent, tool
from offbook.runtime import Message, ScriptedModel, ToolCall


@tool(needs_approval=True)
def pay(account: int, note: str = "") -> str:
    """Pay."""
    with open("paid.txt", "a") as file:
        file.write(f"{account}\\n")
    return f"paid {account}"


def call(request):
    done = sum(message.role == "tool" for message in request.messages)
    if done == len(CALLS):
        return "over"
    return Message.assistant("", (ToolCall(f"c{done}", "pay", CALLS[done]),))


CALLS = os.environ["CALLS"].splitlines()
agent = ChatModelAgent(name="Bank", model=ScriptedModel([call] * 9), tools=[pay])
'''

LARGE = 2**53 + 1


@pytest.fixture
def bank(command, tmp_path, monkeypatch):
    (tmp_path / "bank.py").write_text(BANK)

    def call(calls, *args, says=None):
        sys.modules.pop("bank", None)
        monkeypatch.setenv("CALLS", calls)
        return command(*args, says=says)

    return call


def paid(folder):
    file = folder / "paid.txt"
    return file.read_text().split() if file.exists() else []


def interrupt_of(shown):
    return next(line for line in shown.splitlines() if line.startswith("as ")).removeprefix("as ")


def test_g22_a_call_is_shown_whole_and_exactly(bank, tmp_path):
    note = "x" * 300 + " and 9999 to \u202eyrollaM\u200b"
    arguments = json.dumps({"account": LARGE, "note": note}, ensure_ascii=False)
    run = bank(arguments, "run", "bank.py", "pay").stderr.split("offbook resume ")[1].split()[0]
    shown = bank(arguments, "resume", run, "bank.py", says="yes\n").stdout
    assert f'"account": {LARGE}' in shown
    assert "9999 to \\u202eyrollaM\\u200b" in shown
    assert "\u202e" not in shown
    assert paid(tmp_path) == [str(LARGE)]


def test_g22_yes_names_the_call_that_was_seen(bank, tmp_path):
    calls = '{"account": 10}\n{"account": 10000}'
    kept = ("--store", "runs.db")
    bank(calls, "run", "bank.py", "pay", *kept)
    run = json.loads(bank(calls, "runs", *kept, "--json").stdout.splitlines()[0])["id"]
    shown = interrupt_of(bank(calls, "show", run, *kept).stdout)
    for approves in (["--yes"], ["--data", "yes"]):
        refused = bank(calls, "resume", run, "bank.py", *kept, *approves)
        assert (refused.exit_code, len(refused.stderr.splitlines())) == (1, 1)
        assert "must name a call that you have inspected" in refused.stderr
    assert paid(tmp_path) == []
    # It waits for the next one.
    assert bank(calls, "resume", shown, "bank.py", *kept, "--yes").exit_code == 3
    again = bank(calls, "resume", shown, "bank.py", *kept, "--yes")
    assert (again.exit_code, "no run waits for" in again.stderr) == (1, True)
    assert paid(tmp_path) == ["10"]
    next_one = interrupt_of(bank(calls, "show", run, *kept).stdout)
    assert bank(calls, "resume", next_one, "bank.py", *kept, "--no", "too much").exit_code == 0
    assert paid(tmp_path) == ["10"]


@pytest.mark.slow
def test_g22_what_was_typed_before_the_question_is_no_answer(bank, tmp_path):
    terminal = Terminal(tmp_path, "run", "bank.py", CALLS='{"account": 10}')
    try:
        terminal.until("you> ")
        terminal.type("pay\nyes\nyes\n")
        terminal.until("wants to call")
        terminal.until("e to edit> ")
        assert paid(tmp_path) == []
        terminal.type("no\n")
        terminal.until("you> ")
        assert paid(tmp_path) == []
        terminal.type("\x04")
        assert terminal.ended() == 0
    finally:
        terminal.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("typed", "result"), [(["\n"] * 30, ["1"]), (["\n", "no\n"], []), (["\n", "yes\n"], [])]
)
def test_g22_a_long_call_is_paged_and_cannot_be_approved_unseen(bank, tmp_path, typed, result):
    note = "x" * 9_000 + " and 9999 to Mallory"
    terminal = Terminal(tmp_path, "run", "bank.py", CALLS=json.dumps({"account": 1, "note": note}))
    try:
        terminal.until("you> ")
        terminal.type("pay\n")
        seen = ""
        for line in typed:
            seen += terminal.until("> ")
            if "e to edit" in seen:
                assert "Mallory" in seen.replace("\r\n", "")
                terminal.type("yes\n")
                break
            terminal.type(line)
        terminal.until("over")
        assert paid(tmp_path) == result
    finally:
        terminal.close()


def test_text_is_laid_out_without_a_change():
    text = '{"a":[1,{"b":12345678901234567890.10}],"c":"{,}:\\"","d":{},"a":[]}'
    shown = laid_out(text)
    assert shown.split("\n")[:4] == ["{", '  "a": [', "    1,", "    {"]
    assert "".join(line.strip() for line in shown.split("\n")).replace(": ", ":") == text
    assert laid_out('{"a": ') == '{"a": '
    assert laid_out('{"a":"\U000e0041"}') == '{\n  "a": "\\udb40\\udc41"\n}'
    assert json.loads(laid_out('{"a":"\u202e\ufeff\u2028"}')) == {"a": "\u202e\ufeff\u2028"}


@pytest.mark.parametrize("text", ["plain", "é 日本 ❤️ 🎉", "two\nlines\tand a tab"])
def test_text_that_hides_nothing_is_shown_as_it_is(text):
    assert visible(text) == text
