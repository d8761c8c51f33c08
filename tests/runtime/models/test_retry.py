"""A model that is asked again when it fails."""

import asyncio

import pytest

from offbook.runtime.backoff import Backoff
from offbook.runtime.data.chat import Message, MessageDelta, Usage
from offbook.runtime.errors import ModelError, ModelRetry, RetryExhausted, UsageError
from offbook.runtime.models import FailoverModel, LimitedModel, RetryModel, ScriptedModel

EXACT = Backoff(initial=1, factor=2, jitter=0)


def busy(text="busy", **fields):
    return ModelError(text, kind="server", **{"retryable": True, **fields})


class Naps(list):
    async def __call__(self, seconds):
        self.append(seconds)


@pytest.fixture
def naps():
    return Naps()


@pytest.fixture
def retrying(naps):
    def make(script, **options):
        inner = script if hasattr(script, "generate") else ScriptedModel(script)
        return RetryModel(inner, **{"backoff": EXACT, "sleep": naps, **options})

    return make


class Streaming:
    """Streams each of its scripts in turn: items, and errors to raise."""

    def __init__(self, *scripts):
        self.scripts = list(scripts)
        self.closed = 0

    async def generate(self, request):
        raise NotImplementedError

    async def stream(self, request):
        try:
            for item in self.scripts.pop(0):
                if isinstance(item, BaseException):
                    raise item
                yield item
        finally:
            self.closed += 1


def test_it_waits_longer_each_time_and_then_answers(run, ask, naps, retrying):
    model = retrying([busy(), TimeoutError(), ConnectionResetError(), "fine"])
    assert run(model.generate(ask())).text == "fine"
    assert naps == [1, 2, 4]


def test_it_never_comes_back_sooner_than_asked(run, ask, naps, retrying):
    assert (
        run(retrying([busy(retry_after=7.5), busy(retry_after=0.1), "fine"]).generate(ask())).text
        == "fine"
    )
    assert naps == [7.5, 2]


@pytest.mark.parametrize("streaming", [False, True])
def test_a_wait_beyond_max_retry_after_is_an_error_at_once(
    run, ask, collect, naps, retrying, streaming
):
    first = Message("assistant", usage=Usage(7, 5, 0, 1))
    model = retrying(
        [busy("too much", message=first), busy("tomorrow", status=429, retry_after=86400), "never"]
    )
    with pytest.raises(RetryExhausted, match=r"86400 s.*max_retry_after=60.*tomorrow") as caught:
        run(collect(model.stream(ask())) if streaming else model.generate(ask()))
    assert (caught.value.retry_after, caught.value.status, caught.value.retryable) == (
        86400,
        429,
        False,
    )
    assert caught.value.message.usage == Usage(7, 5, 0, 1)
    assert naps == [1]


def test_the_bound_is_ones_own_and_holds_for_the_model_of_a_run(run, ask, naps, retrying):
    class Viewed(ScriptedModel):
        def for_run(self):
            return Viewed([busy(retry_after=11), "fine"])

    with pytest.raises(RetryExhausted):
        run(retrying(Viewed(), max_retry_after=10).for_run().generate(ask()))
    assert (
        run(retrying([busy(retry_after=3600), "fine"], max_retry_after=None).generate(ask())).text
        == "fine"
    )
    assert naps == [3600]


def test_a_failover_around_it_comes_to_the_next_model(run, ask, naps, retrying):
    first = retrying([busy(retry_after=86400)])
    assert run(FailoverModel([first, ScriptedModel(["second"])]).generate(ask())).text == "second"
    assert naps == []


def test_what_failed_together_does_not_come_back_together(run, ask, naps, retrying):
    """300 callers that are asked to wait for a second come back over half a second, none before its
    time.
    """

    async def main():
        for _ in range(300):
            await retrying([busy(retry_after=1), "fine"], backoff=Backoff(initial=0.5)).generate(
                ask()
            )

    run(main())
    assert min(naps) >= 1
    assert max(naps) - min(naps) > 0.4
    assert len({round(nap, 1) for nap in naps}) >= 5


def test_after_the_last_attempt_it_says_how_many_there_were(run, ask, naps, retrying):
    last = busy("still busy", status=503, retry_after=3)
    with pytest.raises(RetryExhausted, match=r"3 attempts.*still busy") as caught:
        run(retrying([busy(), busy(), last], max_retries=2).generate(ask()))
    assert caught.value.__cause__ is last
    assert (caught.value.kind, caught.value.status, caught.value.retryable, len(naps)) == (
        "server",
        503,
        False,
        2,
    )


@pytest.mark.parametrize(
    "error",
    [ModelError("no", kind="auth"), ValueError("x"), UsageError("x"), asyncio.CancelledError()],
)
def test_what_will_not_pass_is_raised_as_it_is(run, ask, naps, retrying, error):
    async def main():
        with pytest.raises(type(error)) as caught:
            await retrying([error]).generate(ask())
        assert caught.value is error
        assert naps == []

    run(main())


def test_a_cancellation_is_never_even_shown_to_should_retry(run, ask, retrying):
    async def main():
        model = retrying([asyncio.CancelledError(), "x"], should_retry=lambda outcome: True)
        with pytest.raises(asyncio.CancelledError):
            await model.generate(ask())

    run(main())


def test_should_retry_sees_errors_and_replies(run, ask, retrying):
    seen = []

    async def short(outcome):
        seen.append(outcome)
        return isinstance(outcome, ValueError) or (
            isinstance(outcome, Message) and len(outcome.text) < 5
        )

    error = ValueError("x")
    assert (
        run(retrying([error, "abc", "abcde"], should_retry=short).generate(ask())).text == "abcde"
    )
    assert seen == [error, Message.assistant("abc"), Message.assistant("abcde")]
    with pytest.raises(RetryExhausted, match="refused the reply"):
        run(retrying(["a", "b"], max_retries=1, should_retry=lambda outcome: True).generate(ask()))


def test_usage_adds_up_over_all_that_was_counted(run, ask, collect, retrying):
    used = Message.assistant("a", usage=Usage(1, 2, 0, 1))
    empty = busy(message=used.replace(content=""))
    for call in (lambda model: model.generate(ask()), lambda model: collect(model.stream(ask()))):
        result = run(
            call(
                retrying(
                    [empty, busy(), used, used.replace(content="long")],
                    should_retry=lambda o: isinstance(o, Exception) or len(o.text) < 2,
                )
            )
        )
        assert (result if isinstance(result, Message) else result[-1]).usage == Usage(3, 6, 0, 3)
    with pytest.raises(RetryExhausted) as caught:
        run(retrying([empty, busy()], max_retries=1).generate(ask()))
    assert caught.value.message.usage == Usage(1, 2, 0, 1)


def test_a_stream_that_fails_before_it_has_shown_anything_starts_again_silently(
    run, ask, collect, retrying
):
    whole = Message.assistant("ab")
    model = Streaming([busy()], [busy()], [MessageDelta("ab"), whole])
    assert run(collect(retrying(model).stream(ask()))) == [MessageDelta("ab"), whole]
    assert model.closed == 3


def test_a_stream_that_has_shown_something_takes_it_back(run, ask, collect, retrying):
    whole = Message.assistant("ab")
    model = Streaming(
        [MessageDelta("x"), busy()],
        [MessageDelta("y"), Message.assistant("y")],
        [MessageDelta("z")],
        [MessageDelta("ab"), whole],
    )
    refuse = lambda outcome: isinstance(outcome, Exception) or outcome.text == "y"  # noqa: E731
    items = run(collect(retrying(model, should_retry=refuse).stream(ask())))
    assert [item.attempt if isinstance(item, ModelRetry) else item for item in items] == [
        MessageDelta("x"),
        1,
        MessageDelta("y"),
        2,
        MessageDelta("z"),
        3,
        MessageDelta("ab"),
        whole,
    ]


def test_a_stream_ends_with_the_error_when_nothing_is_left(run, ask, collect, retrying):
    with pytest.raises(RetryExhausted):
        run(
            collect(
                retrying(Streaming([MessageDelta("x"), busy()], [busy()]), max_retries=1).stream(
                    ask()
                )
            )
        )
    with pytest.raises(ValueError):
        run(collect(retrying(Streaming([MessageDelta("x"), ValueError()])).stream(ask())))


def test_closing_the_stream_closes_the_models(run, ask, retrying):
    async def main():
        model = Streaming([MessageDelta("x"), MessageDelta("y")])
        stream = retrying(model).stream(ask())
        await anext(stream)
        await stream.aclose()
        assert model.closed == 1

    run(main())


def test_a_view_for_a_run_reaches_through_the_wrappers():
    inner = FailoverModel([ScriptedModel(), ScriptedModel()])
    model = LimitedModel(RetryModel(inner), max_concurrency=2)
    view = model.for_run()
    assert view is not model
    assert view._limiter is model._limiter
    assert view._model._model is not inner
    plain = LimitedModel(RetryModel(ScriptedModel()), max_concurrency=1)
    assert plain.for_run() is plain


@pytest.mark.parametrize("options", [{"model": None}, {"max_retries": -1}, {"backoff": 3}])
def test_bad_arguments_are_refused(options):
    with pytest.raises(UsageError):
        RetryModel(**{"model": ScriptedModel(), **options})
