"""What a session says was said, what it has cost, and who looks on."""

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from offbook.actors import tool
from offbook.actors.realtime import RealtimeAgent, RealtimeModelSendRawMessage, UserMessageItem
from offbook.actors.realtime.local import Call, Gate, Reply, Say, silence, speech
from offbook.actors.realtime.state.conversation import Conversation
from offbook.runtime import AgentHooks, RunHooks, Usage
from offbook.runtime.testing import ManualClock
from tests.doubles.realtime import desk, until

AGENT = RealtimeAgent("desk", "Answer.")


def test_case_48_a_late_transcript_stands_before_its_answer(run):
    async def main():
        held = []
        async with desk(AGENT, Reply(Say("It is noon."))) as at:
            at.server.transcriptions = lambda *args: held.append(args)
            await at.session.send_audio(speech("what time is it"))
            await at.session.send_audio(silence())
            await at.heard.until_shown("agent_end")
            await held[0][0].transcribed(held[0][1], held[0][2])
            await at.heard.until(lambda: at.texts() == ["what time is it", "It is noon."])
            user = at.session.history[0]
            raw = {
                "id": user.item_id,
                "type": "message",
                "role": "user",
                "content": [{"type": "input_audio", "transcript": None}],
            }
            # An empty one erases nothing.
            await at.server.session.send({"type": "conversation.item.retrieved", "item": raw})
            await at.session.model.send_event(
                RealtimeModelSendRawMessage(
                    {
                        "type": "conversation.item.delete",
                        "other_data": {"item_id": at.session.history[1].item_id},
                    }
                )
            )
            await at.heard.until(lambda: at.texts() == ["what time is it"])

    run(main())


def test_case_48_growing_transcripts_are_shown_now_and_then(run):
    async def main():
        clock, gate = ManualClock(), Gate()
        words = " ".join(f"word{number}" for number in range(200))
        async with desk(
            AGENT,
            Reply(Say(words, ms=2_000), gate),
            clock=clock,
            consume=False,
            config={"raw_events": "none"},
        ) as at:
            await at.session.send_message("talk")
            await at.until_queued(2_000)
            assert len(at.session.history[1].content[0].transcript) == len(words)
            await at.session.close()
            assert [event.type async for event in at.session].count("history_updated") == 1
        async with desk(
            AGENT,
            Reply(Say(words, ms=2_000), gate),
            clock=clock,
            config={"history_updates": "items"},
        ) as at:
            await at.ask("talk") if gate.open() is None else None
            assert len(at.heard.of("history_updated")) < 10

    run(main())


def test_a_snapshot_is_made_when_it_is_read_and_items_are_bounded():
    conversation = Conversation()
    for number in range(1_500):
        conversation.put(
            UserMessageItem.model_validate(
                {"item_id": str(number), "previous_item_id": str(number - 1), "content": []}
            )
        )
    items = conversation.snapshot()
    assert len(items) == 1_000
    assert items[-1].item_id == "1499"
    conversation.put(
        UserMessageItem.model_validate(
            {"item_id": "between", "previous_item_id": "1400", "content": []}
        )
    )
    assert [item.item_id for item in conversation.snapshot()[899:903]] == [
        "1400",
        "between",
        "1401",
        "1402",
    ]


def test_case_49_usage_adds_up_over_responses_cancelled_ones_and_a_reconnect(run):
    async def main():
        gate = Gate()
        async with desk(
            AGENT,
            Reply(Say("One.")),
            Reply(Say("Two", ms=3_000), gate),
            otherwise=Reply(Say("Three.")),
        ) as at:
            await at.ask("one")
            assert at.session.usage == Usage(10, 5, 2, 1)
            await at.session.send_message("two")
            await at.heard.until(lambda: len(at.heard.of("audio")) >= 4)
            await at.session.interrupt()
            await at.heard.until_shown("agent_end", 2)
            assert at.session.usage == Usage(20, 10, 4, 2)
            at.server.session.peer.abort()
            await at.heard.until_shown("reconnected")
            await at.ask("three")
            assert at.session.usage == Usage(30, 15, 6, 3)
            assert at.heard.of("agent_end")[-1].usage == Usage(10, 5, 2, 1)

    run(main())


@pytest.fixture
def spans(monkeypatch):
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(
        trace, "get_tracer", lambda name, *args, **kwargs: provider.get_tracer(name)
    )
    return exporter


def test_case_50_hooks_and_spans_see_a_session_with_a_tool_and_a_handoff(run, spans, caplog):
    async def main():
        seen = []

        class Hooks(RunHooks):
            def on_run_start(self, context, input):
                seen.append("run")

            def on_run_end(self, context, result):
                seen.append(f"over {result.status}")

            def on_agent_start(self, context, agent):
                seen.append(f"start {agent.name}")

            def on_agent_end(self, context, agent, outcome):
                seen.append(f"end {agent.name}")

            async def on_tool_start(self, context, agent, tool, call):
                seen.append(f"tool {tool.name}")
                raise ValueError("a hook changes nothing")

            def on_tool_end(self, context, agent, tool, result):
                seen.append(f"tool said {result.text}")

            def on_handoff(self, context, from_agent, to_agent):
                seen.append(f"{from_agent.name} to {to_agent.name}")

            def on_model_end(self, context, agent, message):
                seen.append(f"model {agent.name}")

        class Own(AgentHooks):
            def on_start(self, context, agent):
                seen.append("own start")

        @tool
        def look() -> str:
            """Look."""
            return "found the treasure"

        billing = RealtimeAgent("billing", hooks=Own())
        desk_agent = RealtimeAgent("desk", tools=[look], handoffs=[billing])
        async with desk(
            desk_agent,
            Reply(Call("look")),
            Reply(Call("transfer_to_billing")),
            Reply(Say("a secret word")),
            hooks=Hooks(),
        ) as at:
            await at.ask("go", 3)
            await until(lambda: "own start" in seen and seen.count("model billing") == 1)
        assert seen[:2] == ["run", "start desk"]
        assert [one for one in seen if "to" in one.split()] == ["desk to billing"]
        assert {
            "tool look",
            "tool said found the treasure",
            "end desk",
            "start billing",
            "end billing",
            "over completed",
        } <= set(seen)
        assert seen.index("desk to billing") < seen.index("start billing")
        assert "a hook changes nothing" in caplog.text

    run(main())
    names = [span.name for span in spans.get_finished_spans()]
    assert {"realtime.session", "realtime.connect", "realtime.response", "tool", "handoff"} <= set(
        names
    )
    shown = str([dict(span.attributes) for span in spans.get_finished_spans()])
    assert not any(text in shown for text in ("treasure", "secret word", "secret-key"))
    (said,) = [
        span
        for span in spans.get_finished_spans()
        if span.attributes.get("offbook.agent") == "billing"
        and "offbook.first_audio_ms" in span.attributes
    ]
    assert said.attributes["offbook.status"] == "completed"


def test_tracing_is_off_here_and_at_the_server_if_the_config_says_so(run, spans):
    async def main():
        async with desk(AGENT, Reply(Say("Yes.")), config={"tracing_disabled": True}) as at:
            assert at.server.sent("session.update")[0]["session"]["tracing"] is None
            await at.ask("hi")

    run(main())
    assert [
        span.name for span in spans.get_finished_spans() if span.name.startswith("realtime")
    ] == []
