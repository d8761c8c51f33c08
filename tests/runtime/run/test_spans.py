"""The spans of runs: of which steps there are some, which is under which, and what they say."""

import asyncio
import subprocess
import sys

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import SpanProcessor
from opentelemetry.trace import SpanKind, StatusCode

from offbook.actors import (
    ChatModelAgent,
    Handoff,
    Parallel,
    Sequential,
    ToolContext,
    input_guardrail,
    set_sub_agents,
    tool,
)
from offbook.actors import GuardrailFunctionOutput as Found
from offbook.runtime import (
    ActorSystem,
    FailoverModel,
    MemoryStore,
    Message,
    RetryModel,
    Runner,
    ScriptedModel,
    SQLiteStore,
    ToolCalls,
    Usage,
)
from tests.doubles.spans import Spans


@pytest.fixture
def spans(monkeypatch):
    made = Spans(monkeypatch)
    yield made
    made.provider.shutdown()


def chat(name, *script, **options):
    return ChatModelAgent(name=name, description=name, model=ScriptedModel(list(script)), **options)


@tool
def look_up(city: str) -> str:
    """Look it up."""
    with trace.get_tracer("program").start_as_current_span("in the tool"):
        return f"rain in {city}"


@tool
def ask(context: ToolContext) -> str:
    """Ask."""
    return context.interrupt("sure?") or "no answer"


@tool
def fail() -> str:
    """Fail."""
    raise ValueError("the roof leaks")


def test_each_step_of_a_run_has_a_span_under_that_of_the_request(run, spans):
    async def main():
        with trace.get_tracer("web").start_as_current_span("request"):
            return await Runner(
                chat("A", ToolCalls(look_up={"city": "Rome"}), "done", tools=[look_up])
            ).query("hello")

    run(main())
    assert spans.lines() == [
        "request < None",
        "invoke_workflow A < request",
        "invoke_agent A < invoke_workflow A",
        "chat ScriptedModel < invoke_agent A",
        "execute_tool look_up < invoke_agent A",
        "in the tool < execute_tool look_up",
        "chat ScriptedModel < invoke_agent A",
    ]


def test_a_run_that_is_started_from_a_thread_is_under_the_span_of_that_thread(spans):
    with (
        ActorSystem.in_thread() as system,
        trace.get_tracer("web").start_as_current_span("request"),
    ):
        Runner(chat("A", "done"), system=system).query("hello").result()
    assert spans.lines()[:2] == ["request < None", "invoke_workflow A < request"]


def test_they_say_what_the_conventions_have(run, spans):
    reply = Message("assistant", "done", usage=Usage(7, 3, 2, 1), finish_reason="stop")

    async def main():
        agent = chat("A", reply)
        return await Runner(agent, store=MemoryStore()).session("s").query("hello", run_id="r")

    run(main())
    root, model = spans.one("invoke_workflow A"), spans.one("chat ScriptedModel")
    for name, value in {
        "gen_ai.operation.name": "invoke_workflow",
        "gen_ai.workflow.name": "A",
        "gen_ai.conversation.id": "s",
        "session.id": "s",
        "offbook.run_id": "r",
        "offbook.status": "completed",
        "gen_ai.usage.input_tokens": 7,
        "gen_ai.usage.output_tokens": 3,
    }.items():
        assert root.attributes[name] == value
    assert model.kind is SpanKind.CLIENT
    assert (
        model.attributes["gen_ai.operation.name"],
        model.attributes["gen_ai.request.model"],
    ) == ("chat", "ScriptedModel")
    assert (
        model.attributes["gen_ai.usage.input_tokens"],
        model.attributes["gen_ai.usage.cache_read.input_tokens"],
    ) == (7, 2)
    assert model.attributes["gen_ai.response.finish_reasons"] == ("stop",)


def test_agents_side_by_side_and_as_tools_are_under_what_has_called_them(run, spans):
    inner = chat("Inner", "inner").as_tool()
    team = Sequential(
        name="Team",
        sub_agents=[
            Parallel(
                name="Both",
                sub_agents=[
                    chat("X", "x"),
                    chat("Y", ToolCalls(Inner={"request": "?"}), "y", tools=[inner]),
                ],
            )
        ],
    )

    async def main():
        return await Runner(team).query("hello")

    run(main())
    lines = spans.lines()
    for line in (
        "invoke_agent Team < invoke_workflow Team",
        "invoke_agent Both < invoke_agent Team",
        "invoke_agent X < invoke_agent Both",
        "invoke_agent Y < invoke_agent Both",
        "execute_tool Inner < invoke_agent Y",
        "invoke_agent Inner < execute_tool Inner",
    ):
        assert line in lines
    assert all(span.end_time >= span.start_time for span in spans.all())


def test_a_transfer_and_a_handoff_have_one_each(run, spans):
    async def main():
        tree = set_sub_agents(
            chat("A", ToolCalls(transfer_to_agent={"agent_name": "B"})), [chat("B", "done")]
        )
        await Runner(tree).query("hello")
        assert [dict(span.attributes) for span in spans.named("transfer")] == [
            {"offbook.from_agent": "A", "offbook.to_agent": "B"}
        ]
        await Runner(chat("C", ToolCalls(transfer_to_d={}), handoffs=[chat("D", "done")])).query(
            "hello"
        )
        assert dict(spans.one("handoff").attributes) == {
            "offbook.from_agent": "C",
            "offbook.to_agent": "D",
        }
        assert len(spans.named("transfer")) == 1

    run(main())


def test_a_guardrail_has_one_that_says_whether_it_has_tripped(run, spans):
    @input_guardrail(run_in_parallel=False)
    def polite(context, agent, value):
        return Found(tripwire_triggered=value == "damn")

    async def main():
        for text in ("please", "damn"):
            await Runner(chat("A", "done", input_guardrails=[polite])).query(text)

    run(main())
    assert [
        span.attributes["offbook.guardrail.tripped"] for span in spans.named("guardrail polite")
    ] == [False, True]


async def fail_in_each_way():
    """A tool, a guardrail, a handoff and a model fail, each with the roof in its text."""

    async def no_time(seconds):
        """It takes none."""

    @input_guardrail(run_in_parallel=False)
    def leaky(context, agent, value):
        raise ValueError("the roof leaks")

    def choose(context, arguments):
        raise ValueError("the roof leaks")

    broken = Handoff(
        tool_name="go",
        tool_description="Go.",
        input_json_schema={},
        on_invoke_handoff=choose,
        agent_name="B",
    )
    retried = FailoverModel(
        [
            RetryModel(
                ScriptedModel([ConnectionError("the roof leaks")] * 2), max_retries=1, sleep=no_time
            ),
            ScriptedModel(["done"]),
        ]
    )
    await Runner(chat("A", ToolCalls(fail={}), tools=[fail], on_tool_error="raise")).query("hello")
    await Runner(chat("G", "done", input_guardrails=[leaky])).query("hello")
    await Runner(chat("H", ToolCalls(go={}), handoffs=[broken])).query("hello")
    await Runner(ChatModelAgent(name="M", model=retried)).query("hello")


def everything_said(spans):
    return "".join(
        f"{span.name}{dict(span.attributes)}{span.status.description}{[(one.name, dict(one.attributes)) for one in span.events]}"
        for span in spans.all()
    )


def test_what_fails_is_an_error_with_its_type_alone(run, spans):
    run(fail_in_each_way())
    for name in ("invoke_workflow A", "invoke_agent A", "execute_tool fail"):
        assert spans.one(name).status.status_code is StatusCode.ERROR
        assert (
            spans.one(name).status.description
            == spans.one(name).attributes["error.type"]
            == "ToolError"
        )
    for name in ("guardrail leaky", "handoff"):
        assert spans.one(name).attributes["error.type"] == "ValueError"
    assert {event.name for event in spans.named("chat ScriptedModel")[-1].events} == {
        "retry",
        "failover",
    }
    assert "roof" not in everything_said(spans)


def test_texts_of_errors_are_in_spans_that_may_hold_content(run, spans, monkeypatch):
    monkeypatch.setenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "true")

    async def main():
        await Runner(chat("A", ToolCalls(fail={}), tools=[fail], on_tool_error="raise")).query(
            "hello"
        )

    run(main())
    for name in ("invoke_workflow A", "invoke_agent A", "execute_tool fail"):
        assert "the roof leaks" in spans.one(name).status.description
    assert spans.one("chat ScriptedModel").status.status_code is StatusCode.UNSET


def test_a_model_that_is_asked_again_notes_each_try(run, spans):
    async def no_time(seconds):
        """It takes none."""

    async def main():
        model = RetryModel(ScriptedModel([ConnectionError("gone"), "done"]), sleep=no_time)
        await Runner(ChatModelAgent(name="A", model=model)).query("hello")

    run(main())
    (event,) = spans.one("chat ScriptedModel").events
    assert (event.name, event.attributes["offbook.attempt"]) == ("retry", 1)


def test_a_reply_in_pieces_says_when_the_first_one_came(run, spans):
    async def main():
        await Runner(chat("A", "one two three")).query("hello", streaming=True)

    run(main())
    assert spans.one("chat ScriptedModel").attributes["gen_ai.response.time_to_first_chunk"] >= 0
    assert spans.one("chat ScriptedModel").attributes["gen_ai.request.stream"] is True


def test_a_run_that_is_resumed_is_linked_to_the_one_before(run, spans, store_of):
    store = store_of("sqlite")

    async def main():
        def runner():
            return Runner(
                chat("A", ToolCalls(ask={}), tools=[ask])
                if not spans.all()
                else chat("A", "done", tools=[ask]),
                store=store,
            )

        waiting = runner().query("hello")
        await waiting
        return await runner().resume(waiting.checkpoint_id, data="yes")

    assert run(main()).text == "done"
    first, second = spans.named("invoke_workflow A")
    assert [link.context.span_id for link in second.links] == [first.context.span_id]
    assert (first.attributes["offbook.status"], second.attributes["offbook.status"]) == (
        "interrupted",
        "completed",
    )
    assert first.attributes["offbook.run_id"] == second.attributes["offbook.run_id"]
    assert spans.one("interrupt").attributes["offbook.interrupt.address"] == "A/ask"
    assert spans.one("resume A").links[0].context.span_id == first.context.span_id
    assert [
        bool(span.attributes.get("offbook.interrupted")) for span in spans.named("execute_tool ask")
    ] == [True, False]


LOST = """
import asyncio, os, sys
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
trace.set_tracer_provider(TracerProvider())
from offbook.actors import ChatModelAgent, tool
from offbook.runtime import Runner, SQLiteStore, ScriptedModel, ToolCalls

@tool
def work() -> str:
    "Work."
    own = trace.get_current_span().parent
    print(f"{own.trace_id:032x}", flush=True)
    os._exit(9)

async def main():
    agent = ChatModelAgent(name="A", model=ScriptedModel([ToolCalls(work={})]), tools=[work])
    await Runner(agent, store=SQLiteStore(sys.argv[1]), durability="step").query("hello", run_id="r")

asyncio.run(main())
"""


def test_a_run_that_is_recovered_is_linked_to_the_one_in_the_lost_process(run, spans, tmp_path):
    path = str(tmp_path / "runs.db")
    lost = subprocess.run(
        [sys.executable, "-c", LOST, path], capture_output=True, text=True, timeout=60
    )
    assert lost.returncode == 9, lost.stderr

    @tool
    def work() -> str:
        """Work."""
        return "worked"

    async def main():
        async with ActorSystem() as system:
            store = SQLiteStore(path)
            (again,) = await Runner(
                chat("A", "done", tools=[work]), system=system, store=store, durability="step"
            ).recover()
            result = await again
        store.close()
        return result

    assert run(main()).text == "done"
    (link,) = spans.one("invoke_workflow A").links
    assert f"{link.context.trace_id:032x}" == lost.stdout.strip()
    assert link.context.is_remote
    assert spans.one("recover A").parent.span_id == spans.one("invoke_workflow A").context.span_id


def test_a_run_that_is_cancelled_leaves_no_span_open(run, spans, gate):
    @tool
    async def wait() -> str:
        """Wait."""
        await gate.wait()
        return "waited"

    async def main():
        going = Runner(chat("A", ToolCalls(wait={}), tools=[wait])).query("hello")
        await gate.reached()
        going.cancel()
        await going

    run(main())
    assert {span.name for span in spans.all()} == {
        "invoke_workflow A",
        "invoke_agent A",
        "chat ScriptedModel",
        "execute_tool wait",
    }
    assert spans.one("invoke_workflow A").attributes["offbook.status"] == "cancelled"


def test_a_processor_that_raises_touches_no_run(run, spans, caplog):
    class Raising(SpanProcessor):
        def on_start(self, span, parent_context=None):
            raise ValueError("no")

        def on_end(self, span):
            raise ValueError("no")

    spans.provider.add_span_processor(Raising())

    async def main():
        return await Runner(chat("A", ToolCalls(look_up_={}), "done")).query("hello")

    assert run(main()).text == "done"
    assert any("span processor" in record.getMessage() for record in caplog.records)


def test_runs_at_once_do_not_see_each_others_spans(run, spans):
    async def main():
        async with ActorSystem() as system:
            runner = Runner(
                ChatModelAgent(name="A", model=ScriptedModel(["done"] * 50)), system=system
            )
            await asyncio.gather(*(runner.query("hello") for _ in range(50)))

    run(main())
    roots = {span.context.span_id: span for span in spans.named("invoke_workflow A")}
    agents = {span.context.span_id: span for span in spans.named("invoke_agent A")}
    assert {span.parent.span_id for span in agents.values()} == roots.keys()
    assert {span.parent.span_id for span in spans.named("chat ScriptedModel")} == agents.keys()
    assert len(roots) == 50


def test_where_the_program_traces_nothing_a_run_has_no_watch(run):
    seen = []

    def look(context):
        seen.append(context.run.watch)
        return "Be brief."

    async def main():
        await Runner(chat("A", "done", instruction=look)).query("hello")

    run(main())
    assert seen == [None]
