"""The span of a handoff, as OpenTelemetry is given it."""

import asyncio
import subprocess
import sys

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode
from pydantic import BaseModel

from offbook.actors import Handoff, handoff
from offbook.runtime import Runner, ToolCalls
from tests.doubles.handing import chat, go, raw


class Reason(BaseModel):
    text: str


@pytest.fixture
def spans(monkeypatch):
    """The spans that have ended so far, as name, attributes, whether it is an error, and what that
    says.
    """
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", provider)
    yield lambda: [
        (
            span.name,
            {key.removeprefix("offbook."): value for key, value in span.attributes.items()},
            span.status.status_code is StatusCode.ERROR,
            span.status.description,
        )
        for span in exporter.get_finished_spans()
        if span.name in ("handoff", "mine")
    ]
    provider.shutdown()


def test_it_says_from_whom_to_whom(spans):
    Runner(chat("A", go("B"), handoffs=[chat("B", go("C"), handoffs=[chat("C", "done")])])).query(
        "q"
    ).result()
    assert spans() == [
        ("handoff", {"from_agent": "A", "to_agent": "B"}, False, None),
        ("handoff", {"from_agent": "B", "to_agent": "C"}, False, None),
    ]


def test_it_is_open_around_the_callback_and_the_filter_and_closed_before_the_target(
    spans, run, caplog
):
    async def story():
        seen = []

        async def on_handoff(context):
            await asyncio.sleep(0)
            seen.append(trace.get_current_span())
            await asyncio.sleep(0)

        async def input_filter(data):
            await asyncio.sleep(0)
            seen.append(trace.get_current_span())
            return data

        def b_says(request):
            seen.append(trace.get_current_span())
            return "done"

        before = trace.get_current_span()
        await Runner(
            chat(
                "A",
                go("B"),
                handoffs=[
                    handoff(chat("B", b_says), on_handoff=on_handoff, input_filter=input_filter)
                ],
            )
        ).query("q")
        assert seen[0] is seen[1]
        assert (seen[0].name, seen[2] is seen[0], trace.get_current_span() is before) == (
            "handoff",
            False,
            True,
        )
        assert seen[2].name == "chat ScriptedModel"
        # What runs on the same loop afterwards is not within it.
        again = chat("A", lambda request: seen.append(trace.get_current_span()) or "hello")
        await Runner(again).query("q")
        assert seen[-1].name == "chat ScriptedModel"

    run(story())
    assert caplog.records == [], "whoever opens a span closes it where it was opened"


def test_a_span_of_the_users_stays_his(spans, run):
    async def story():
        with trace.get_tracer("mine").start_as_current_span("mine") as mine:
            await Runner(chat("A", go("B"), handoffs=[chat("B", "done")])).query("q")
            assert trace.get_current_span() is mine

    run(story())
    assert [name for name, *_ in spans()] == ["handoff", "mine"]


def test_the_one_that_was_chosen_by_hand_is_named(spans):
    Runner(
        chat(
            "A",
            go("x"),
            handoffs=[
                Handoff(
                    "transfer_to_x",
                    "",
                    {},
                    lambda context, arguments: chat("Night", "done"),
                    "Shift",
                )
            ],
        )
    ).query("q").result()
    assert spans() == [("handoff", {"from_agent": "A", "to_agent": "Night"}, False, None)]


def test_several_at_once_are_an_error_of_it(spans):
    b, c, d = (chat(name, "done") for name in "BCD")
    Runner(chat("A", go("C", "B", "D"), handoffs=[b, c, d])).query("q").result()
    attributes = {"from_agent": "A", "to_agent": "C", "requested_agents": ("C", "B", "D")}
    assert spans() == [("handoff", attributes, True, "several handoffs were requested at once")]


@pytest.mark.parametrize("mode", ["transfer", "call"])
def test_bad_input_is_an_error_of_it(spans, mode):
    to_b = handoff(
        chat("B", "done"), on_handoff=lambda context, value: None, input_type=Reason, mode=mode
    )
    Runner(
        chat(
            "A",
            raw("B", '{"text": 3}'),
            ToolCalls(transfer_to_b={"text": "x"}),
            "done",
            handoffs=[to_b],
        )
    ).query("q").result()
    (name, attributes, is_error, why), good = spans()
    assert (name, attributes.pop("error.type"), is_error) == ("handoff", "ModelBehaviorError", True)
    assert why == "ModelBehaviorError", "its text holds arguments"
    assert (
        good
        == ("handoff", {"from_agent": "A", "to_agent": "B"}, False, None)
        == (name, attributes, False, None)
    )


@pytest.mark.parametrize("on_tool_error", ["report", "raise"])
def test_what_a_callback_raises_is_an_error_of_it(spans, on_tool_error):
    def fails(context):
        raise ValueError("no")

    Runner(
        chat(
            "A",
            go("B"),
            handoffs=[handoff(chat("B"), on_handoff=fails)],
            on_tool_error=on_tool_error,
        )
    ).query("q").result()
    ((name, _, is_error, why),) = spans()
    assert (name, is_error) == ("handoff", True)
    assert why == "HandoffError"


def test_a_program_that_does_not_trace_does_without():
    program = """if True:
        import sys
        sys.modules["opentelemetry"] = None  # as if it were not installed
        from offbook.actors import ChatModelAgent
        from offbook.runtime import Runner, ScriptedModel, ToolCalls
        b = ChatModelAgent(name="B", model=ScriptedModel(["done"]))
        a = ChatModelAgent(name="A", model=ScriptedModel([ToolCalls(transfer_to_b={})]), handoffs=[b])
        print(Runner(a).query("q").result().final_output, [name for name in sys.modules if name.startswith("opentelemetry.")])
    """
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=30
    )
    assert (done.stdout, done.stderr) == ("done []\n", "")
