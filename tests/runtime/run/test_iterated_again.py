"""A second iteration over a run that has ended: its events, once more."""

import pytest

from offbook.actors import ChatModelAgent, Sequential
from offbook.runtime import Runner, ScriptedModel


def tree():
    return Sequential(
        name="S",
        sub_agents=[
            ChatModelAgent(name=name, model=ScriptedModel([f"{name} says so"])) for name in "AB"
        ],
    )


def test_a_loop_over_a_run_may_be_written_twice():
    run = Runner(tree()).query("go")
    first = list(run)
    assert [event.message.text for event in first] == ["A says so", "B says so"]
    assert list(run) == list(run) == first
    assert list(run) == list(run.result().events)


def test_the_same_in_a_coroutine(run):
    async def main():
        begun = Runner(tree()).query("go")
        first = [event async for event in begun]
        assert [event async for event in begun] == first
        assert (await begun).events == tuple(first)
        assert [event async for event in begun] == first

    run(main())


def test_the_pieces_of_messages_are_not_among_them():
    run = Runner(tree(), streaming=True).query("go")
    assert any([event.delta is not None for event in run])  # noqa: C419 -- to the end: one that is left is cancelled
    assert [event.message.text for event in run] == ["A says so", "B says so"]


def test_one_that_was_left_shows_what_there_was(run):
    async def main():
        begun = Runner(tree()).query("go")
        async for _ in begun:
            break
        await begun.wait_ended()
        result = await begun
        assert result.status in ("cancelled", "completed")
        assert [event async for event in begun] == list(result.events)

    run(main())


def test_leaving_the_second_one_early_does_nothing():
    run = Runner(tree()).query("go")
    first = list(run)
    for _ in run:
        break
    assert list(run) == first
    assert run.status == "completed"


@pytest.mark.parametrize("kind", [tuple, list])
def test_what_failed_is_shown_again_too(kind):
    run = Runner(ChatModelAgent(name="A", model=ScriptedModel([ConnectionError("down")]))).query(
        "go"
    )
    assert (
        [type(event.error) for event in kind(run)]
        == [type(event.error) for event in kind(run)]
        == [ConnectionError]
    )
