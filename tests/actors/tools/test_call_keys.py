"""`context.idempotency_key`: the same for a call that is made again, also from a copy of the store
that lacks the last steps, and another one for each call.
"""

import asyncio
import json
import uuid
from types import SimpleNamespace

import pytest

from offbook.actors import ChatModelAgent, Loop, Parallel, Sequential, ToolContext, tool
from offbook.actors.tools.call_key import key_of
from offbook.runtime import MemoryStore, Message, Runner, ToolCall
from tests.doubles.snapshots import Snapshots


class Provider:
    """A model whose n-th reply in a conversation is the n-th of its lines. Its calls have other ids
    and another spelling of the arguments each time.
    """

    def __init__(self, *lines):
        self.lines = lines

    async def generate(self, request):
        line = self.lines[
            sum(message.role == "assistant" for message in request.messages) % len(self.lines)
        ]
        await asyncio.sleep(0)
        if isinstance(line, str):
            return Message.assistant(line)
        return Message.assistant(
            "",
            tuple(
                ToolCall(uuid.uuid4().hex, name, self._text(arguments)) for name, arguments in line
            ),
        )

    @staticmethod
    def _text(arguments):
        names = sorted(arguments, reverse=uuid.uuid4().int % 2 == 0)
        return json.dumps({name: arguments[name] for name in names}, indent=uuid.uuid4().int % 3)


def pays(*amounts):
    return [("pay", {"euros": euros, "to": "Ann"}) for euros in amounts]


def make_team(paid):
    """Agents that pay in each way in which a call can be nested. `paid` is given what was paid by
    whom, and the key.
    """

    @tool
    async def pay(context: ToolContext, euros: int, to: str) -> str:
        """Pay."""
        paid.append((context.run_path, euros, context.idempotency_key))
        await asyncio.sleep(0)
        return f"paid {euros} to {to}"

    def clerk(name, *lines):
        return ChatModelAgent(name=name, model=Provider(*lines), tools=[pay])

    inner = ChatModelAgent(
        name="inner",
        description="Pays.",
        model=Provider(pays(5), pays(5, 5), "inner done"),
        tools=[pay],
    )
    asks = [("inner", {"request": "pay"})]
    boss = ChatModelAgent(
        name="boss",
        model=Provider(asks, [*asks, *asks, *pays(5)], "boss done"),
        tools=[inner.as_tool(name="inner"), pay],
    )
    second = clerk("second", pays(1), "second done")
    first = ChatModelAgent(
        name="first",
        model=Provider(pays(1, 1), [("transfer_to_agent", {"agent_name": "second"})]),
        tools=[pay],
        sub_agents=[second],
    )
    return Sequential(
        name="team",
        sub_agents=[
            clerk("plain", pays(1, 2, 1), pays(1), "plain done"),
            Parallel(
                name="both",
                sub_agents=[clerk("left", pays(3, 3), "l"), clerk("right", pays(3, 3), "r")],
            ),
            Loop(name="again", sub_agents=[clerk("looped", pays(4), "again")], max_iterations=3),
            boss,
            first,
        ],
    )


CALLS = 4 + 4 + 3 + (3 * 3 + 1) + 3


async def pay_all(content=None):
    """What was paid by a run from the beginning, or from there; and the store."""
    store, paid = Snapshots(content), []
    runner = Runner(make_team(paid), store=store, durability="step", keep="unfinished")
    runs = [runner.query("go", run_id="payday")] if content is None else await runner.recover()
    for one in runs:
        assert (await one).status == "completed"
    return paid, store


def test_two_calls_of_a_run_have_two_keys(run):
    async def main():
        paid, _ = await pay_all()
        assert len(paid) == CALLS
        assert len({key for *_, key in paid}) == CALLS, (
            "also calls of one tool with the same arguments, of one agent and of several"
        )
        assert all(key.startswith("payday:") for *_, key in paid)

    run(main())


def test_a_run_that_is_begun_again_with_its_id_makes_the_same_keys(run):
    async def main():
        first, _ = await pay_all()
        second, _ = await pay_all()
        assert sorted(first) == sorted(second), "the ids of calls and invocations were others"

    run(main())


def test_a_run_that_continues_from_an_older_copy_of_the_store_makes_the_keys_that_it_had_made(run):
    async def main():
        first, store = await pay_all()
        keys = {key: (path, euros) for path, euros, key in first}
        assert len(store.taken) > CALLS
        made_again = 0
        for _what, content in store.taken[:-1]:
            again, _ = await pay_all(content)
            made_again += len(again)
            assert {key: (path, euros) for path, euros, key in again}.items() <= keys.items()
            assert len({key for *_, key in again}) == len(again)
        assert made_again > 10 * CALLS

    run(main())


def test_two_runs_share_no_key(run):
    async def main():
        paid = []
        runner = Runner(make_team(paid), store=MemoryStore(), durability="step")
        await asyncio.gather(*(runner.query("go") for _ in range(3)))
        assert len({key for *_, key in paid}) == len(paid) == 3 * CALLS

    run(main())


@pytest.mark.parametrize(
    "arguments", ["{", "[" * 100_000, "", '{"a": 1e400}', '{"a": "\\ud800"}', "\ud800"]
)
def test_arguments_of_any_form_have_a_key(arguments):
    calls = tuple(ToolCall(call_id, "pay", arguments) for call_id in "12")
    agent_call = SimpleNamespace(cast_key=0, parent=None, tool=None)
    invocation = SimpleNamespace(
        messages=[Message.assistant("", calls)], names=("a",), agent_call=agent_call
    )
    keys = [key_of("r", invocation, call) for call in (*calls, ToolCall("3", "pay", arguments))]
    assert len(set(keys)) == 3
