"""Children that play at once."""

import asyncio

import pytest

from offbook.actors import ChatModelAgent, Loop, Parallel, Sequential
from offbook.runtime import (
    AgentEvent,
    Exit,
    Runner,
    RunStatus,
    ScriptedModel,
    ToolCalls,
    TransferToAgent,
    UsageError,
)

CRASHES = [
    KeyboardInterrupt("k"),
    SystemExit(3),
    asyncio.CancelledError("c"),
    GeneratorExit(),
    BaseException("own"),
]


def play(agent, **options):
    return Runner(agent, **options).query("q", timeout=10).result()


class Gate:
    """Holds those who wait until somebody opens it."""

    def __init__(self):
        self.event = asyncio.Event()

    async def wait(self, _context):
        await self.event.wait()

    async def open(self, _context):
        self.event.set()


async def forever(_context):
    await asyncio.Event().wait()


def test_an_empty_parallel_ends_at_once(lines):
    result = play(Parallel(name="P", sub_agents=[]))
    assert lines(result) == []
    assert result.status is RunStatus.COMPLETED


def test_all_children_play_at_once_and_their_events_interleave(run, lines, actor):
    async def main():
        first, second, third = Gate(), Gate(), Gate()
        a = actor("A", "a1", first.open, second.wait, "a2", third.open)
        b = actor("B", first.wait, "b1", second.open, third.wait, "b2")
        result = await Runner(Parallel(name="P", sub_agents=[a, b])).query("q")
        assert lines(result) == [
            'A [P,A] assistant "a1"',
            'B [P,B] assistant "b1"',
            'A [P,A] assistant "a2"',
            'B [P,B] assistant "b2"',
        ]
        assert result.status is RunStatus.COMPLETED

    run(main())


def test_each_lane_is_in_order(actor):
    result = play(
        Parallel(
            name="P",
            sub_agents=[actor(name, *(str(number) for number in range(40))) for name in "ABC"],
        )
    )
    for name in "ABC":
        assert [event.message.text for event in result.events if event.agent_name == name] == [
            str(number) for number in range(40)
        ]


def test_what_comes_after_a_parallel_waits_for_all_of_it(run, actor):
    async def main():
        gate, order = Gate(), []

        async def note(context):
            order.append(context.agent_name)

        p = Parallel(
            name="P", sub_agents=[actor("A", note, gate.open), actor("B", gate.wait, note)]
        )
        await Runner(Sequential(name="S", sub_agents=[p, actor("C", note)])).query("q")
        assert order == ["A", "B", "C"]

    run(main())


def test_a_parallel_emits_nothing_of_its_own(actor):
    result = play(Parallel(name="P", sub_agents=[actor("A", "a"), actor("B")]))
    assert [event.agent_name for event in result.events] == ["A"]


# --- how many at once ---


@pytest.mark.parametrize("most", [1, 2, 3, 5, None])
def test_no_more_than_max_concurrency_play_at_once(run, actor, most):
    async def main():
        at_once, highest = 0, 0

        async def work(_context):
            nonlocal at_once, highest
            at_once += 1
            highest = max(highest, at_once)
            for _ in range(5):
                await asyncio.sleep(0)
            at_once -= 1

        result = await Runner(
            Parallel(
                name="P",
                sub_agents=[actor(f"A{n}", work, "x") for n in range(5)],
                max_concurrency=most,
            )
        ).query("q")
        assert len(result.events) == 5
        assert highest == (most or 5)

    run(main())


def test_with_one_at_a_time_they_play_in_order_and_still_see_nothing_of_each_other(lines, actor):
    a, b = actor("A", "a1", "a2"), actor("B", "b")
    assert [
        event.agent_name
        for event in play(Parallel(name="P", sub_agents=[a, b], max_concurrency=1)).events
    ] == ["A", "A", "B"]
    assert [message.text for message in b.inputs[0]] == ["q"]


@pytest.mark.parametrize(
    "options", [{"max_concurrency": 0}, {"max_concurrency": -1}, {"on_error": "ignore"}]
)
def test_bad_options_are_refused(actor, options):
    with pytest.raises(UsageError, match="Parallel 'P'"):
        Parallel(name="P", sub_agents=[actor("A")], **options)


# --- errors and crashes ---


@pytest.mark.parametrize("end", [ValueError("broken"), AgentEvent(error=ValueError("broken"))])
def test_an_error_does_not_touch_the_siblings_and_the_parallel_fails_after_the_join(
    run, lines, actor, end
):
    async def main():
        gate = Gate()
        p = Parallel(
            name="P",
            sub_agents=[
                actor("A", "a", gate.open, end),
                actor("B", gate.wait, "b1", "b2"),
                actor("C", "c"),
            ],
        )
        after = actor("Z", "never")
        result = await Runner(Sequential(name="S", sub_agents=[p, after])).query("q")
        assert sorted(lines(result)) == [
            'A [S,P,A] assistant "a"',
            "A [S,P,A] error ValueError: broken",
            'B [S,P,B] assistant "b1"',
            'B [S,P,B] assistant "b2"',
            'C [S,P,C] assistant "c"',
        ]
        assert result.status is RunStatus.FAILED
        assert str(result.error) == "broken"
        assert after.inputs == []

    run(main())


@pytest.mark.parametrize("crash", CRASHES, ids=repr)
def test_a_crash_does_not_touch_the_siblings_either(run, actor, crash, caplog):
    async def main():
        gate = Gate()
        a, b = actor("A", "a", gate.open, crash), actor("B", gate.wait, "b1", "b2")
        after = actor("Z", "never")
        result = await Runner(
            Sequential(name="S", sub_agents=[Parallel(name="P", sub_agents=[a, b]), after])
        ).query("q")
        assert [event.message.text for event in result.events if event.agent_name == "B"] == [
            "b1",
            "b2",
        ]
        (error,) = [event.error for event in result.events if event.error is not None]
        assert result.error is error
        assert "'A' crashed" in str(error)
        assert type(crash).__name__ in str(error)
        assert error.__cause__ is crash
        assert result.status is RunStatus.FAILED
        assert after.inputs == []

    run(main())


@pytest.mark.parametrize("crash", CRASHES, ids=repr)
def test_a_crash_alone_fails_the_run(lines, actor, crash):
    result = play(actor("A", "a", crash))
    assert result.status is RunStatus.FAILED
    assert lines(result)[0] == 'A [A] assistant "a"'
    assert lines(result)[1].startswith(
        f"A [A] error AgentError: agent 'A' crashed with {type(crash).__name__}"
    )
    assert len(result.events) == 2


@pytest.mark.parametrize("crash", CRASHES, ids=repr)
def test_a_crash_of_a_model_or_of_a_history_rewriter_is_its_agent_s(actor, crash):
    def rewrite(_entries):
        raise crash

    def ask(_request):
        raise crash

    for agent in (
        actor("A", history=rewrite),
        ChatModelAgent(name="A", model=ScriptedModel([ask])),
    ):
        result = play(Parallel(name="P", sub_agents=[agent, actor("B", "b")]))
        assert result.status is RunStatus.FAILED
        assert sorted(event.agent_name for event in result.events) == ["A", "B"]


def test_of_several_errors_the_first_child_s_is_the_parallel_s(run, actor):
    async def main():
        gate = Gate()
        a, b = actor("A", gate.wait, ValueError("a")), actor("B", gate.open, KeyError("b"))
        result = await Runner(Parallel(name="P", sub_agents=[a, b])).query("q")
        assert isinstance(result.error, ValueError)
        assert sorted(event.agent_name for event in result.events) == ["A", "B"]

    run(main())


@pytest.mark.parametrize("end", [ValueError("broken"), *CRASHES], ids=repr)
def test_with_cancel_an_error_or_crash_ends_the_siblings(run, actor, end):
    async def main():
        cleaned = []

        async def tidy(_context):
            try:
                await forever(_context)
            finally:
                cleaned.append("B")

        b, c = (
            actor("B", "b", tidy, "never"),
            Sequential(name="C", sub_agents=[actor("C1", forever), actor("C2", "never")]),
        )
        p = Parallel(name="P", sub_agents=[b, actor("A", end), c], on_error="cancel")
        after = actor("Z", "never")
        result = await asyncio.wait_for(
            _finish(Runner(Sequential(name="S", sub_agents=[p, after])).query("q")), 5
        )
        assert [(event.agent_name, event.error is not None) for event in result.events] == [
            ("B", False),
            ("A", True),
        ]
        assert result.status is RunStatus.FAILED
        assert result.error is result.events[-1].error
        assert cleaned == ["B"]
        assert after.inputs == []

    run(main())


async def _finish(one):
    return await one


def test_with_cancel_those_not_begun_do_not_begin(actor):
    never = [actor(f"N{number}", "never") for number in range(3)]
    result = play(
        Parallel(
            name="P",
            sub_agents=[actor("A", ValueError("broken")), *never],
            max_concurrency=1,
            on_error="cancel",
        )
    )
    assert result.status is RunStatus.FAILED
    assert [one.inputs for one in never] == [[], [], []]


def test_with_isolate_those_not_begun_begin_nevertheless(actor):
    later = [actor(f"N{number}", "x") for number in range(3)]
    result = play(
        Parallel(name="P", sub_agents=[actor("A", ValueError("broken")), *later], max_concurrency=1)
    )
    assert result.status is RunStatus.FAILED
    assert [event.agent_name for event in result.events] == ["A", "N0", "N1", "N2"]


def test_with_cancel_models_and_tools_under_way_are_ended_too(run, actor):
    async def main():
        async def slow() -> str:
            await asyncio.Event().wait()
            return "never"

        async def answer(_request):
            await asyncio.Event().wait()

        gate = asyncio.Event()

        async def started(_request):
            gate.set()
            return ToolCalls(slow={})

        async def wait(_context):
            await gate.wait()

        b = ChatModelAgent(name="B", model=ScriptedModel([started]), tools=[slow])
        c = ChatModelAgent(name="C", model=ScriptedModel([answer]))
        p = Parallel(
            name="P", sub_agents=[b, c, actor("A", wait, ValueError("broken"))], on_error="cancel"
        )
        result = await asyncio.wait_for(_finish(Runner(p).query("q")), 5)
        assert [event.agent_name for event in result.events][-1] == "A"
        assert result.status is RunStatus.FAILED

    run(main())


def test_with_cancel_only_its_own_children_are_ended(run, actor):
    async def main():
        gate = Gate()
        inner = Parallel(
            name="In",
            sub_agents=[actor("A", ValueError("broken")), actor("B", forever)],
            on_error="cancel",
        )

        async def let_go(_context):
            for _ in range(20):
                await asyncio.sleep(0)

        result = await asyncio.wait_for(
            _finish(
                Runner(Parallel(name="Out", sub_agents=[inner, actor("C", let_go, "c")])).query("q")
            ),
            5,
        )
        assert [event.agent_name for event in result.events] == ["A", "C"]
        assert result.status is RunStatus.FAILED
        del gate

    run(main())


# --- exit ---


def test_a_child_s_exit_lets_its_siblings_finish_and_then_the_parallel_has_exited(
    run, lines, actor
):
    async def main():
        gate = Gate()
        a, b = actor("A", Exit(), "never"), actor("B", "b1", gate.open, "b2")
        after = actor("Z", "never")
        result = await Runner(
            Sequential(name="S", sub_agents=[Parallel(name="P", sub_agents=[a, b]), after])
        ).query("q")
        assert sorted(lines(result)) == [
            "A [S,P,A] {Exit}",
            'B [S,P,B] assistant "b1"',
            'B [S,P,B] assistant "b2"',
        ]
        assert result.status is RunStatus.COMPLETED
        assert after.inputs == []

    run(main())


def test_an_exit_with_one_at_a_time_lets_the_later_siblings_play(actor):
    result = play(
        Parallel(name="P", sub_agents=[actor("A", Exit()), actor("B", "b")], max_concurrency=1)
    )
    assert [event.agent_name for event in result.events] == ["A", "B"]


def test_an_exit_beside_an_error_is_a_failure(actor):
    result = play(
        Parallel(name="P", sub_agents=[actor("A", Exit()), actor("B", ValueError("broken"))])
    )
    assert result.status is RunStatus.FAILED


def test_an_exit_goes_through_a_parallel_and_a_loop(actor):
    after = actor("Z", "never")
    inner = Parallel(
        name="P",
        sub_agents=[
            Sequential(name="T", sub_agents=[actor("A", Exit()), actor("A2", "never")]),
            actor("B", "b"),
        ],
    )
    result = play(Sequential(name="S", sub_agents=[Loop(name="L", sub_agents=[inner]), after]))
    assert sorted(event.agent_name for event in result.events) == ["A", "B"]
    assert (result.status, after.inputs) == (RunStatus.COMPLETED, [])


# --- children ---


def test_a_child_hands_over_in_its_lane(actor):
    a = actor("A", TransferToAgent("A1"), sub_agents=[a1 := actor("A1", "a1")])
    result = play(Parallel(name="P", sub_agents=[a, actor("B", "b")], max_concurrency=1))
    assert [event.run_path for event in result.events if event.message is not None] == [
        ("P", "A", "A1"),
        ("P", "B"),
    ]
    assert [message.text for message in a1.inputs[0]] == ["q"]


def test_session_values_are_shared_by_the_lanes(actor):
    async def put(context):
        context.session["x"] = 1

    seen = []

    async def take(context):
        seen.append(context.session.get("x"))

    play(Parallel(name="P", sub_agents=[actor("A", put), actor("B", take)], max_concurrency=1))
    assert seen == [1]


def test_two_children_of_different_parallels_may_share_a_name(actor):
    shared = actor("W", "w")
    one, two = (
        Parallel(name="P1", sub_agents=[shared, actor("A", "a")]),
        Parallel(name="P2", sub_agents=[actor("W", "v"), shared_not := actor("B", "b")]),
    )
    result = play(Sequential(name="S", sub_agents=[one, two]))
    assert sorted(event.message.text for event in result.events) == ["a", "b", "v", "w"]
    assert shared_not.inputs


def test_a_parallel_in_a_parallel(lines, actor):
    inner = Parallel(name="In", sub_agents=[actor("A", "a"), actor("B", "b")])
    assert sorted(lines(play(Parallel(name="Out", sub_agents=[inner, actor("C", "c")])))) == [
        'A [Out,In,A] assistant "a"',
        'B [Out,In,B] assistant "b"',
        'C [Out,C] assistant "c"',
    ]


@pytest.mark.parametrize("children", [60])
def test_many_children(actor, children):
    result = play(
        Parallel(name="P", sub_agents=[actor(f"A{number}", "1", "2") for number in range(children)])
    )
    assert len(result.events) == 2 * children
    assert result.status is RunStatus.COMPLETED
