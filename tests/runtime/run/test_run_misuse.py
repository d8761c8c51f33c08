"""What cannot work says so, and begins nothing."""

import asyncio

import pytest

from offbook.actors import ChatModelAgent
from offbook.runtime import ActorSystem, MemoryStore, Runner, ScriptedModel, UsageError


@pytest.fixture
def model():
    return ScriptedModel(["hi"])


def test_a_system_that_was_not_entered_is_refused(run, model):
    agent = ChatModelAgent(name="A", model=model)
    with pytest.raises(UsageError, match=r"has not been entered.*async with ActorSystem"):
        Runner(agent, system=ActorSystem()).query("go").result()

    async def main():
        runner = Runner(agent, system=ActorSystem())
        with pytest.raises(UsageError, match=r"has not been entered.*async with ActorSystem"):
            runner.query("go")
        async with runner.system:
            assert (await runner.query("go")).final_output == "hi"

    run(main())


@pytest.mark.parametrize("use", [lambda run: run.result(), iter], ids=["result", "iter"])
@pytest.mark.parametrize(
    "options",
    [{}, {"store": MemoryStore()}, {"store": MemoryStore(), "durability": "step"}],
    ids=["plain", "kept", "step"],
)
@pytest.mark.parametrize("entered", [True, False])
def test_a_run_that_would_block_the_loop_raises_and_does_nothing(run, model, use, options, entered):
    async def main():
        async with ActorSystem() as system:
            runner = Runner(
                ChatModelAgent(name="A", model=model), system=system if entered else None, **options
            )
            playing = runner.query("go")
            with pytest.raises(UsageError, match="an event loop is running"):
                use(playing)
            result = await playing
            assert result.status == "cancelled"
            assert [event.message for event in result.events] in ([], [None])  # at most the error

    run(main())
    assert model.requests == []


def test_a_run_that_has_begun_goes_on(run):
    async def main():
        begun, go_on = asyncio.Event(), asyncio.Event()

        async def answer(_request):
            begun.set()
            await go_on.wait()
            return "hi"

        playing = Runner(ChatModelAgent(name="A", model=ScriptedModel([answer]))).query("go")
        await begun.wait()
        with pytest.raises(UsageError, match="an event loop is running"):
            playing.result()
        go_on.set()
        assert (await playing).final_output == "hi"

    run(main())


@pytest.mark.parametrize("name", ["text", "final_output", "error", "interrupts", "raise_for_error"])
def test_a_run_that_is_taken_for_its_result_says_that_it_is_to_be_awaited(run, model, name):
    async def main():
        playing = Runner(ChatModelAgent(name="A", model=model)).query("go")
        with pytest.raises(AttributeError, match=rf"`\(await run\)\.{name}`"):
            getattr(playing, name)
        assert getattr(await playing, name) is not NotImplemented

    run(main())


def test_a_run_has_no_other_attributes(model):
    playing = Runner(ChatModelAgent(name="A", model=model)).query("go")
    with pytest.raises(AttributeError, match="'Run' object has no attribute 'txt'"):
        playing.txt  # noqa: B018
    assert playing.result().text == "hi"
