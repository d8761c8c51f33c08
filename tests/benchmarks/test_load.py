"""Load: the provider's replies, the framework's own time, the knee, and a run of a few
conversations over real HTTP.
"""

import json
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from benchmarks.of_load.level import as_markdown, knee_in, level_of
from benchmarks.of_load.worker import without_ids
from benchmarks.provider.replies import (
    SIXTY_WORDS,
    answer_of,
    chunks_of,
    reply_to,
    text_of,
    whole_of,
)
from benchmarks.provider.running import held_by, provider

ROOT = Path(__file__).parents[2]


def body(*messages, model="front", **more):
    return json.dumps({"model": model, "messages": list(messages), **more}).encode()


def asked(do, *, conversation=17, turn=2):
    return {"role": "user", "content": text_of(conversation, turn, do)}


RESULT = {"role": "tool", "tool_call_id": "call_1", "content": "It is on its way."}


# --- what the provider says ---


def test_a_request_without_a_mark_gets_sixty_words():
    reply = reply_to(body({"role": "user", "content": "Hello."}))
    assert (reply.text, reply.call, reply.turn) == (SIXTY_WORDS, None, None)


def test_a_turn_with_a_tool_calls_it_and_then_answers_for_its_own_conversation():
    first, second = reply_to(body(asked("tool"))), reply_to(body(asked("tool"), RESULT))
    assert first.call == ("lookup", '{"order": 17}')
    assert (second.call, second.text, second.turn) == (None, answer_of(17, 2), (17, 2))


def test_the_last_mark_of_a_history_counts_and_what_came_before_it_does_not():
    history = [asked("tool"), RESULT, {"role": "assistant", "content": answer_of(17, 2)}]
    assert reply_to(body(*history, asked("tool", turn=3))).call is not None
    assert reply_to(body(*history, asked("talk", turn=3))).text == answer_of(17, 3)


def test_the_front_hands_over_and_the_back_answers():
    assert reply_to(body(asked("transfer"))).call == ("transfer_to_agent", '{"agent_name": "back"}')
    assert reply_to(body(asked("transfer"), RESULT, model="back")).text == answer_of(17, 2)


def test_a_streamed_reply_has_an_event_for_each_word_and_its_usage_only_if_it_was_asked_for():
    reply = reply_to(
        body(
            {"role": "user", "content": "Hello."},
            stream=True,
            stream_options={"include_usage": True},
        )
    )
    events = [json.loads(event.removeprefix(b"data: ")) for event in chunks_of(reply)[:-1]]
    assert (
        "".join(
            event["choices"][0]["delta"].get("content", "") for event in events if event["choices"]
        )
        == SIXTY_WORDS
    )
    assert len(events) == 62
    assert events[-1]["usage"]["total_tokens"] == 72
    assert len(chunks_of(reply_to(body({"role": "user", "content": "Hello."}, stream=True)))) == 62
    assert json.loads(whole_of(reply))["choices"][0]["message"]["content"] == SIXTY_WORDS


def test_the_provider_says_how_long_it_held_each_turn_and_forgets_it():
    with provider(median=0.02, sigma=0.0) as address:
        for turn in (0, 0, 1):
            request = urllib.request.Request(
                f"{address.base_url}/chat/completions",
                body(asked("talk", conversation=5, turn=turn)),
            )
            with urllib.request.urlopen(request, timeout=30) as response:
                assert json.load(response)["choices"][0]["message"]["content"] == answer_of(5, turn)
        held = held_by(address.port)
        assert set(held.seconds) == {(5, 0), (5, 1)}
        assert held.seconds[5, 0] >= 0.04, "two requests of one turn add up"
        assert held.seconds[5, 1] >= 0.02
        assert (held.requests, held.cpu_seconds > 0) == (3, True)
        assert held_by(address.port).seconds == {}


# --- what is made of it ---


def figures(conversations, per_second, *, own=0.01, provider=0.1, failed=None):
    return {
        "conversations": conversations,
        "turns": 1000,
        "failed": failed or {},
        "wall_seconds": 10.0,
        "cpu_seconds": 5.0,
        "requests": 1500,
        "provider_cpu_seconds": provider * 10.0,
        "connections": conversations,
        "resident_before": 50 * 2**20,
        "resident_most": 50 * 2**20 + conversations * 20 * 2**10,
        "threads_more": 1,
        "collections": 1,
        "longest_collection": 0.25,
        "files_most": conversations + 12,
        "per_second": per_second,
        "own": {"p50": own, "p95": own * 2, "p99": own * 3, "most": own * 4},
        "waited_mean": 0.49 + own,
        "held_mean": 0.49,
        "thought_mean": 0.5,
    }


def test_the_table_says_where_the_knee_is_and_when_the_provider_was_what_was_slow():
    levels = [level_of(figures(100, 99.0)), level_of(figures(1_000, 400.0, own=1.5, provider=0.9))]
    shown = as_markdown(levels, knee_in(levels), "# Load")
    assert (
        "| 100 | 99.0 | 10.0 ms | 20.0 ms | 30.0 ms | 250 ms | 490 ms | 5.00 ms | 20.0 KiB | +1 | 112 "
        "| 10% | 0 |" in shown
    )
    assert "90% (!)" in shown
    assert "**The knee is at 400 conversations**" in shown


def test_a_knee_that_was_not_reached_is_not_claimed():
    levels = [level_of(figures(100, 99.0)), level_of(figures(1_000, 985.0))]
    assert "**The knee was not reached**; it is above 985 conversations" in as_markdown(
        levels, knee_in(levels), "# Load"
    )


def test_conversations_that_failed_are_counted_with_their_error():
    level = level_of(figures(100, 99.0, failed={"ModelError: no more": 3}))
    shown = as_markdown([level], knee_in([level]), "# Load")
    assert "With 100: 3 conversations ended with ModelError: no more" in shown


def test_failures_of_one_kind_are_one_whatever_their_numbers():
    first = (
        "RunLost: run 0ac4b7ab199cfca31b671b41: its lease was lost, session 'user 113', "
        "http://127.0.0.1:33157/v1"
    )
    second = (
        "RunLost: run 85462965b4434b336eb619fe: its lease was lost, session 'user 7', "
        "http://127.0.0.1:33157/v1"
    )
    assert without_ids(first) == without_ids(second)
    assert without_ids(first).startswith("RunLost: run #: its lease was lost")
    assert without_ids("ModelError: the deadbeef of a café") == "ModelError: the deadbeef of a café"


def test_a_load_of_which_no_turn_came_to_its_end_is_an_error():
    nothing = {"conversations": 7, "failed": {"ModelError: down": 7}}
    with pytest.raises(RuntimeError, match=r"With 7 conversations, no turn came to its end.*down"):
        level_of(nothing)


# --- the whole ---


@pytest.mark.slow
@pytest.mark.timeout(180)
@pytest.mark.parametrize("streaming", [[], ["--streaming"]], ids=["whole", "streamed"])
def test_a_few_conversations_with_a_tool_and_a_transfer_are_measured_over_real_http(
    tmp_path, streaming
):
    output = tmp_path / "load.json"
    command = [
        sys.executable,
        "-m",
        "benchmarks",
        "load",
        "--quick",
        "--conversations",
        "2",
        "6",
        "--turns",
        "4",
        "--output",
        str(output),
        *streaming,
    ]
    done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    document = json.loads(output.read_text())
    assert [one["conversations"] for one in document["levels"]] == [2, 6]
    for level in document["levels"]:
        assert level["failed"] == {}
        assert level["turns"] == level["conversations"] * 4 * -(-20 // (level["conversations"] * 4))
        assert level["requests"] == level["turns"] * 6 / 4, (
            "a tool and a transfer each take a second request"
        )
        assert 0 < level["p50"] <= level["p95"] <= level["p99"]
        assert level["held"] > 0.005
        assert level["threads"] <= 1  # what asks the provider how long it held its replies
    assert "turns/s" in output.with_suffix(".md").read_text()
    assert 5_000 < output.with_suffix(".png").stat().st_size < 200_000
