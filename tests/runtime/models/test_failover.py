"""Several models in the place of one."""

import asyncio

import pytest

from offbook.runtime.data.chat import Message, MessageDelta
from offbook.runtime.errors import ModelError, ModelRetry, RetryExhausted, UsageError
from offbook.runtime.models import FailoverModel, ScriptedModel

DOWN = ModelError("down", kind="auth")


class Breaking(ScriptedModel):
    """Says something, then breaks."""

    async def stream(self, request):
        yield MessageDelta("half")
        await self.generate(request)


@pytest.mark.parametrize(
    "error", [DOWN, RetryExhausted("x"), TimeoutError(), ConnectionResetError()]
)
def test_the_next_one_answers(run, ask, collect, error):
    for call in (lambda model: model.generate(ask()), lambda model: collect(model.stream(ask()))):
        result = run(
            call(
                FailoverModel(
                    [ScriptedModel([error]), ScriptedModel([error]), ScriptedModel(["fine"])]
                )
            )
        )
        assert (result if isinstance(result, Message) else result[-1]).text == "fine"


@pytest.mark.parametrize("error", [UsageError("x"), ValueError("x"), asyncio.CancelledError()])
def test_what_is_not_the_models_fault_goes_no_further(run, ask, collect, error):
    async def main():
        for call in (
            lambda model: model.generate(ask()),
            lambda model: collect(model.stream(ask())),
        ):
            second = ScriptedModel(["x"])
            with pytest.raises(type(error)):
                await call(FailoverModel([ScriptedModel([error]), second]))
            assert second.requests == []

    run(main())


def test_should_failover_decides(run, ask):
    async def only_values(error):
        return isinstance(error, ValueError)

    assert (
        run(
            FailoverModel(
                [ScriptedModel([ValueError()]), ScriptedModel(["b"])], only_values
            ).generate(ask())
        ).text
        == "b"
    )
    with pytest.raises(ModelError):
        run(
            FailoverModel([ScriptedModel([DOWN]), ScriptedModel(["b"])], only_values).generate(
                ask()
            )
        )


def test_when_all_have_failed_the_last_error_tells_of_the_others(run, ask):
    last = ModelError("last")
    with pytest.raises(ModelError) as caught:
        run(
            FailoverModel(
                [
                    ScriptedModel([ModelError("first")]),
                    ScriptedModel([TimeoutError("second")]),
                    ScriptedModel([last]),
                ]
            ).generate(ask())
        )
    assert caught.value is last
    notes = "\n".join(last.__notes__)
    assert "first" in notes
    assert "TimeoutError: second" in notes


def test_within_a_run_the_one_that_answered_is_asked_first_from_then_on(run, ask):
    async def main():
        one, two = ScriptedModel([DOWN, DOWN, "one again"]), ScriptedModel(["a", "b", DOWN, "c"])
        model = FailoverModel([one, two])
        view = model.for_run()
        assert [(await view.generate(ask())).text for _ in range(2)] == ["a", "b"]
        assert len(one.requests) == 1
        with pytest.raises(ModelError):
            await view.generate(ask())  # the second, then round again to the first
        assert (len(one.requests), len(two.requests)) == (2, 3)
        assert (await model.generate(ask())).text == "one again", (
            "used directly, it begins with the first"
        )
        assert (await view.generate(ask())).text == "c"

    run(main())


def test_a_stream_takes_back_what_it_has_shown(run, ask, collect):
    model = FailoverModel([Breaking([DOWN]), ScriptedModel([DOWN]), ScriptedModel(["fine"])])
    items = run(collect(model.stream(ask())))
    assert [item.attempt if isinstance(item, ModelRetry) else item for item in items] == [
        MessageDelta("half"),
        1,
        MessageDelta("fine"),
        Message.assistant("fine"),
    ]


@pytest.mark.parametrize("models", [[], [None], ["gpt"]])
def test_what_are_no_models_is_refused(models):
    with pytest.raises(UsageError):
        FailoverModel(models)
