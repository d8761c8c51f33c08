"""`tracing_from_env()`: what is sent where, and that nothing which goes wrong there touches a
run.
"""

import base64
import logging
import subprocess
import sys
import time

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider

from offbook.actors import ChatModelAgent, tool
from offbook.runtime import Runner, ScriptedModel, ToolCalls, UsageError, tracing_from_env
from offbook.runtime.telemetry.switch import switch
from tests.doubles.collectors import Collector, GrpcCollector

LANGFUSE = {"LANGFUSE_PUBLIC_KEY": "pk-1", "LANGFUSE_SECRET_KEY": "sk-2"}


@pytest.fixture(autouse=True)
def no_provider(monkeypatch):
    """As in a program that has set none."""
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", None)
    monkeypatch.setattr(trace, "_TRACER_PROVIDER_SET_ONCE", type(trace._TRACER_PROVIDER_SET_ONCE)())
    monkeypatch.setattr(switch, "own", None)
    yield
    provider = trace.get_tracer_provider()
    if isinstance(provider, TracerProvider):
        provider.shutdown()


@pytest.fixture
def collector():
    with Collector() as server:
        yield server


@tool
def look_up(city: str) -> str:
    """Look it up."""
    return f"rain in {city}"


def agent():
    return ChatModelAgent(
        name="Weather",
        model=ScriptedModel([ToolCalls(look_up={"city": "Paris"}), "It rains."]),
        tools=[look_up],
    )


def play():
    return Runner(agent()).query("What is it like in Paris?").result()


def test_langfuse_is_sent_the_spans_of_a_run(collector):
    with tracing_from_env(variables={**LANGFUSE, "LANGFUSE_HOST": collector.url}):
        play()
    path, headers, _ = collector.requests[0]
    assert path == "/api/public/otel/v1/traces"
    assert headers["authorization"] == f"Basic {base64.b64encode(b'pk-1:sk-2').decode()}"
    assert headers["x-langfuse-ingestion-version"] == "4"
    assert set(collector.spans()) == {
        "invoke_workflow Weather",
        "invoke_agent Weather",
        "chat ScriptedModel",
        "execute_tool look_up",
    }


def test_cozeloop_is_sent_the_spans_of_a_run(collector):
    with tracing_from_env(
        variables={
            "COZELOOP_API_TOKEN": "pat",
            "COZELOOP_WORKSPACE_ID": "7",
            "COZELOOP_API_BASE_URL": collector.url + "/",
        }
    ):
        play()
    path, headers, _ = collector.requests[0]
    assert path == "/v1/loop/opentelemetry/v1/traces"
    assert (headers["authorization"], headers["cozeloop-workspace-id"]) == ("Bearer pat", "7")
    assert "execute_tool look_up" in collector.spans()


def test_apmplus_is_sent_the_spans_of_a_run_over_grpc():
    with (
        GrpcCollector() as collector,
        tracing_from_env(
            variables={"APMPLUS_APP_KEY": "app", "APMPLUS_HOST": collector.url}
        ) as tracing,
    ):
        play()
        assert tracing.close()
        (_, headers, _) = collector.requests[0]
        assert headers["x-byteapm-appkey"] == "app"
        assert collector.resource()["apmplus.business_type"] == "llm"
        assert "execute_tool look_up" in collector.spans()


@pytest.mark.parametrize(
    "variable", ["OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"]
)
def test_a_collector_of_ones_own_is_sent_them(collector, variable):
    path = "/v1/traces" if variable == "OTEL_EXPORTER_OTLP_ENDPOINT" else "/own"
    address = collector.url if path == "/v1/traces" else collector.url + path
    with tracing_from_env(
        variables={variable: address, "OTEL_EXPORTER_OTLP_HEADERS": "x-key=a%20b,x-other=c"},
        service_name="bot",
    ):
        play()
    assert collector.requests[0][0] == path
    assert (collector.requests[0][1]["x-key"], collector.requests[0][1]["x-other"]) == ("a b", "c")
    assert collector.resource()["service.name"] == "bot"


def test_all_that_are_configured_are_sent_the_same(collector):
    with (
        Collector() as other,
        tracing_from_env(
            variables={
                **LANGFUSE,
                "LANGFUSE_HOST": other.url,
                "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url,
            }
        ) as tracing,
    ):
        play()
        assert [target.name for target in tracing.targets] == ["Langfuse", "OTLP"]
        assert tracing.close()
        assert set(other.spans()) == set(collector.spans()) != set()


def test_what_is_said_is_sent_only_when_that_is_asked_for(collector):
    with tracing_from_env(variables={"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url}):
        play()
    assert "Paris" not in str(collector.requests)
    with tracing_from_env(
        variables={"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url}, capture_content=True
    ):
        play()
    spans = collector.spans()
    root = spans["invoke_workflow Weather"][-1]
    assert (root["input.value"], root["output.value"]) == ("What is it like in Paris?", "It rains.")
    assert "Paris" in spans["chat ScriptedModel"][-1]["gen_ai.input.messages"]
    assert (
        spans["execute_tool look_up"][-1]["gen_ai.tool.call.arguments"],
        spans["execute_tool look_up"][-1]["gen_ai.tool.call.result"],
    ) == (
        '{"city":"Paris"}',
        "rain in Paris",
    )


def test_a_span_around_runs_has_the_query_and_the_last_message(collector):
    with tracing_from_env(variables={"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url}) as tracing:
        root = tracing.start_span("layered-supervisor", "how is it?")
        result = play()
        root.end(result.final_message)
        root.end()
    (said,) = collector.spans()["layered-supervisor"]
    assert (said["input.value"], said["output.value"]) == ("how is it?", "It rains.")
    by_name = {
        span.name: span
        for _, _, message in collector.requests
        for span in message.resource_spans[0].scope_spans[0].spans
    }
    assert (
        by_name["invoke_workflow Weather"].parent_span_id == by_name["layered-supervisor"].span_id
    )


def test_without_variables_nothing_is_set_up_and_opentelemetry_is_not_imported():
    code = (
        "import sys; from offbook.runtime import Runner, ScriptedModel, tracing_from_env; "
        "from offbook.actors import ChatModelAgent\n"
        "tracing = tracing_from_env(variables={'LANGFUSE_HOST': 'http://localhost', "
        "'APMPLUS_REGION': 'cn-beijing', 'COZELOOP_API_TOKEN': ' '})\n"
        "span = tracing.start_span('x', 'query'); span.end('last')\n"
        "Runner(ChatModelAgent(name='a', "
        "model=ScriptedModel(['hello']))).query('x').result(); assert tracing.close()\n"
        "print(tracing, [name for name in sys.modules if name.startswith('opentelemetry')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert (done.stdout, done.stderr) == ("<Tracing to nowhere> []\n", "")


@pytest.mark.parametrize(
    ("variables", "parts"),
    [
        (
            {"LANGFUSE_PUBLIC_KEY": "pk"},
            ("LANGFUSE_PUBLIC_KEY is set", "LANGFUSE_SECRET_KEY is not"),
        ),
        (
            {"LANGFUSE_SECRET_KEY": "sk", "LANGFUSE_PUBLIC_KEY": ""},
            ("LANGFUSE_SECRET_KEY is set", "LANGFUSE_PUBLIC_KEY is not"),
        ),
        (
            {"COZELOOP_WORKSPACE_ID": "7"},
            ("COZELOOP_WORKSPACE_ID is set", "COZELOOP_API_TOKEN is not"),
        ),
        (
            {"APMPLUS_APP_KEY": "k", "APMPLUS_REGION": "cn-bejing"},
            ("APMPLUS_REGION must be ", "got 'cn-bejing'", "Is 'cn-beijing' meant?"),
        ),
        (
            {"APMPLUS_APP_KEY": "k", "APMPLUS_REGION": "Beijing!"},
            ("APMPLUS_REGION must be ", "got 'Beijing!'", "cn-shanghai"),
        ),
        (
            {**LANGFUSE, "LANGFUSE_HOST": "ftp://x"},
            ("LANGFUSE_HOST must be ", "got 'ftp://x'", "https://cloud.langfuse.com"),
        ),
        (
            {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://"},
            ("OTEL_EXPORTER_OTLP_ENDPOINT must be ", "got 'http://'", "http://localhost:4318"),
        ),
        (
            {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x", "OTEL_EXPORTER_OTLP_HEADERS": "a=b,c"},
            ("OTEL_EXPORTER_OTLP_HEADERS", "part 2"),
        ),
        (
            {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/json"},
            ("OTEL_EXPORTER_OTLP_PROTOCOL must be ", "got 'http/json'", "'grpc'"),
        ),
        (
            {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x", "OTEL_EXPORTER_OTLP_TIMEOUT": "soon"},
            ("OTEL_EXPORTER_OTLP_TIMEOUT must be ", "got 'soon'", "seconds"),
        ),
        ({"APMPLUS_APP_KEY": "key\nkey"}, ("APMPLUS_APP_KEY", "a header cannot contain")),
    ],
)
def test_variables_that_are_half_set_or_wrong_are_named(variables, parts):
    with pytest.raises(UsageError) as raised:
        tracing_from_env(variables=variables)
    for part in parts:
        assert part in str(raised.value)


def test_keys_are_in_no_repr():
    tracing = tracing_from_env(variables={**LANGFUSE, "LANGFUSE_HOST": "http://127.0.0.1:9"})
    assert tracing.close()
    assert "sk-2" not in repr(tracing) + repr(tracing.targets)


def test_a_collector_that_refuses_touches_no_run_and_the_log_says_so(collector, caplog):
    collector.status = 400
    with tracing_from_env(variables={"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url}) as tracing:
        assert play().text == "It rains."
        assert not tracing.close()
    assert any("could not be sent to OTLP" in record.getMessage() for record in caplog.records)


def test_a_collector_that_hangs_touches_no_run_and_close_gives_up(collector, caplog):
    collector.may_answer.clear()
    tracing = tracing_from_env(
        variables={"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url, "OTEL_EXPORTER_OTLP_TIMEOUT": "20"}
    )
    for _ in range(3):
        assert play().text == "It rains."
    began = time.monotonic()
    assert not tracing.close(timeout=0.2)
    assert time.monotonic() - began < 15  # and not the 20 s of the request
    assert any("within 0.2 s" in record.getMessage() for record in caplog.records)
    collector.may_answer.set()


def test_a_collector_that_is_not_there_touches_no_run(caplog):
    with Collector() as gone:
        pass
    caplog.set_level(logging.CRITICAL, logger="opentelemetry")
    tracing = tracing_from_env(
        variables={"OTEL_EXPORTER_OTLP_ENDPOINT": gone.url, "OTEL_EXPORTER_OTLP_TIMEOUT": "0.3"}
    )
    assert play().text == "It rains."
    assert not tracing.close()


def test_close_on_a_loop_lets_others_work_meanwhile(run, collector):
    async def main():
        async with tracing_from_env(
            variables={"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url}
        ) as tracing:
            await Runner(agent()).query("hello")
            assert await tracing.aclose()

    run(main())
    assert "invoke_workflow Weather" in collector.spans()


def test_after_close_nothing_is_traced_and_a_second_handle_sends_again(collector):
    variables = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url}
    tracing_from_env(variables=variables).close()
    play()
    assert collector.requests == []
    with tracing_from_env(variables=variables):
        play()
    assert len(collector.spans()["invoke_workflow Weather"]) == 1


def test_a_provider_of_the_programs_own_is_used(collector):
    own = TracerProvider()
    trace.set_tracer_provider(own)
    with tracing_from_env(variables={"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url}):
        assert trace.get_tracer_provider() is own
        with trace.get_tracer("web").start_as_current_span("request"):
            play()
    assert {"request", "invoke_workflow Weather"} <= set(collector.spans())


def test_a_provider_that_takes_no_exporters_is_named():
    trace.set_tracer_provider(trace.NoOpTracerProvider())
    with pytest.raises(UsageError, match="must accept exporters"):
        tracing_from_env(variables={"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"})
