"""The names, and how sessions begin."""

import asyncio
import subprocess
import sys

import pytest

from offbook.actors import ChatModelAgent, realtime, tool
from offbook.actors.realtime import (
    RealtimeAgent,
    RealtimeModelSendToolCallOutput,
    RealtimeModelSendToolOutput,
    RealtimeModelSendUserInput,
    RealtimeModelToolCallEvent,
    RealtimeModelTurnEndedEvent,
    RealtimeModelTurnStartedEvent,
    RealtimeRunner,
    RealtimeSession,
    RealtimeStep,
    ScriptedRealtimeModel,
    realtime_handoff,
)
from offbook.actors.realtime.local import LocalRealtimeServer, Reply, Say
from offbook.runtime import Message, ModelError, Runner, ScriptedModel, UsageError
from tests.doubles.realtime import Heard, desk

NAMES = """RealtimeAgent RealtimeAgentHooks RealtimeRunHooks RealtimeRunner RealtimeSession realtime_handoff RealtimeHandoff RealtimeRunConfig RealtimeModelConfig
RealtimeSessionModelSettings RealtimeGuardrailsSettings RealtimeToolExecutionConfig RealtimeTurnDetectionConfig RealtimeModelTracingConfig RealtimeAudioFormat
RealtimeModelName RealtimeInputAudioTranscriptionConfig RealtimeInputAudioNoiseReductionConfig RealtimeReasoningConfig RealtimeUserInput RealtimeUserInputMessage
RealtimeUserInputText RealtimeAgentStartEvent RealtimeAgentEndEvent RealtimeHandoffEvent RealtimeToolStart RealtimeToolEnd RealtimeToolApprovalRequired RealtimeAudio
RealtimeAudioEnd RealtimeAudioInterrupted RealtimeHistoryAdded RealtimeHistoryUpdated RealtimeGuardrailTripped RealtimeInputAudioTimeoutTriggered RealtimeError
RealtimeRawModelEvent RealtimeEventInfo RealtimeSessionEvent RealtimeInputGuardrailTripped RealtimeToolCancelled RealtimeReconnected RealtimeItem UserMessageItem
AssistantMessageItem SystemMessageItem RealtimeToolCallItem InputText InputAudio InputImage AssistantText AssistantAudio RealtimeModel RealtimeConnection
RealtimeModelListener RealtimePlaybackTracker RealtimePlaybackState RealtimeModelSendAudio RealtimeModelSendInterrupt RealtimeModelSendRawMessage
RealtimeModelSendSessionUpdate RealtimeModelSendUserInput RealtimeModelSendToolOutput RealtimeModelSendToolCallOutput Reconnect RealtimeLimits OpenAIRealtimeModel
OpenAIRealtimeWebSocketModel OpenAIRealtimeSIPModel ScriptedRealtimeModel RealtimeStep RealtimeConnectCall RealtimeResponse RealtimeMessageItem get_api_key
DEFAULT_MODEL_SETTINGS RealtimeModelErrorEvent RealtimeModelToolCallEvent RealtimeModelAudioEvent RealtimeModelUsageEvent RealtimeModelOtherEvent""".split()


def test_case_01_the_names_are_there_and_neither_openai_nor_websockets_is_imported_with_them():
    assert [name for name in NAMES if not hasattr(realtime, name)] == []
    assert RealtimeModelSendToolCallOutput is RealtimeModelSendToolOutput
    assert RealtimeModelSendToolCallOutput(call_id="c", output="o").call_id == "c"
    assert (
        RealtimeModelSendToolOutput(RealtimeModelToolCallEvent("n", "c", "{}"), "o", True).call_id
        == "c"
    )
    assert realtime.OpenAIRealtimeWebSocketModel is realtime.OpenAIRealtimeModel
    code = (
        "import sys, offbook.actors.realtime; sys.exit(bool({'openai', 'websockets'} & "
        "set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
    assert (
        "offbook.actors.realtime"
        not in subprocess.run(
            [sys.executable, "-c", "import sys, offbook.actors; print(*sys.modules)"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout.split()
    )


def test_case_02_sessions_are_opened_at_once_or_when_awaited_and_see_nothing_of_one_another(run):
    async def main():
        async with LocalRealtimeServer(
            otherwise=lambda session, _: Reply(
                Say(f"number {session.items[-1]['content'][0]['text']}")
            )
        ) as server:
            model = realtime.OpenAIRealtimeModel(base_url=server.base_url, api_key="k")
            runner = RealtimeRunner(RealtimeAgent("desk"), model=model)
            async with await runner.run() as one, runner.run() as two:
                assert one.id != two.id

            async def talk(number):
                async with runner.run() as session:
                    heard = Heard(session)
                    await session.send_message(str(number))
                    await heard.until_shown("agent_end")
                    texts = [
                        item.content[0].transcript
                        for item in session.history
                        if item.type == "message" and item.role == "assistant"
                    ]
                await heard.task
                return texts

            assert await asyncio.gather(*(talk(number) for number in range(50))) == [
                [f"number {number}"] for number in range(50)
            ]
            assert server.errors == []

    run(main())


class SdkStyle:
    """A model as programs of the SDK write one."""

    def __init__(self):
        self.listeners, self.sent, self.closed = [], [], 0

    async def connect(self, options):
        self.options = options

    def add_listener(self, listener):
        self.listeners.append(listener)

    def remove_listener(self, listener):
        self.listeners.remove(listener)

    async def send_event(self, event):
        self.sent.append(event)
        if isinstance(event, RealtimeModelSendUserInput):
            for one in (RealtimeModelTurnStartedEvent(), RealtimeModelTurnEndedEvent()):
                await self.listeners[0].on_event(one)

    async def close(self):
        self.closed += 1


def test_case_03_a_model_in_the_style_of_the_sdk_serves_one_session_at_a_time(run):
    async def main():
        model = SdkStyle()
        runner = RealtimeRunner(RealtimeAgent("desk"), model=model)
        async with runner.run() as session:
            heard = Heard(session)
            await session.send_message("hi")
            await heard.until_shown("agent_end")
            assert model.sent == [RealtimeModelSendUserInput("hi")]
            with pytest.raises(UsageError, match="one session at a time"):
                await runner.run().__aenter__()
        await heard.task
        assert (model.closed, model.listeners) == (1, [])
        async with RealtimeSession(model, RealtimeAgent("desk")):  # and now another one
            pass

    run(main())


def test_case_04_what_fails_at_entry_is_raised_there_and_leaves_nothing_open(run):
    def fails(context, agent):
        raise ValueError("no instructions")

    @tool
    def twice() -> None:
        """Twice."""

    async def main():
        failing = ScriptedRealtimeModel(connect_error=ModelError("no", kind="auth", status=401))
        for agent, model, kind in (
            (RealtimeAgent("a", fails), ScriptedRealtimeModel(), ValueError),
            (RealtimeAgent("a", tools=[twice, twice]), ScriptedRealtimeModel(), UsageError),
            (RealtimeAgent("a", tools=[3]), ScriptedRealtimeModel(), UsageError),
            (RealtimeAgent("a"), failing, ModelError),
        ):
            with pytest.raises(kind):
                await RealtimeRunner(agent, model=model).run().__aenter__()
        async with LocalRealtimeServer() as server:
            hold = asyncio.Event()
            server.handshakes.append(hold)
            model = realtime.OpenAIRealtimeModel(base_url=server.base_url, api_key="k")
            session = await RealtimeRunner(RealtimeAgent("a"), model=model).run()
            entering = asyncio.create_task(session.enter())
            while not server.headers:
                await asyncio.sleep(0)
            entering.cancel()
            with pytest.raises(asyncio.CancelledError):
                await entering
            hold.set()

    run(main())


def test_mistakes_are_named_when_they_are_made():
    with pytest.raises(TypeError, match="name must be a string"):
        RealtimeAgent(3)
    with pytest.raises(TypeError, match="tools must be a list"):
        RealtimeAgent("a", tools="x")
    with pytest.raises(UsageError, match="Did you mean 'raw_events'"):
        RealtimeRunner(RealtimeAgent("a"), config={"raw_event": "none"})
    with pytest.raises(UsageError, match="as_tool"):
        realtime_handoff(ChatModelAgent(name="x", model=ScriptedModel([])))
    with pytest.raises(UsageError, match="mode"):
        realtime_handoff(RealtimeAgent("a"), mode="call")
    with pytest.raises(UsageError, match="input_filter"):
        realtime_handoff(RealtimeAgent("a"), input_filter=lambda data: data)


def test_a_runner_refuses_an_agent_that_speaks_and_names_the_one_that_does_not(run):
    async def main():
        result = await Runner(RealtimeAgent("voice")).query("hi")
        assert "RealtimeRunner" in str(result.error)

    run(main())


def test_a_text_agent_takes_part_as_a_tool(run):
    async def main():
        from offbook.actors.realtime.local import Call

        expert = ChatModelAgent(
            name="expert", description="knows", model=ScriptedModel([Message.assistant("42")])
        )
        agent = RealtimeAgent("voice", tools=[expert.as_tool()])
        async with desk(
            agent, Reply(Call("expert", '{"request": "what?"}', "c1")), Reply(Say("It is 42."))
        ) as at:
            await at.ask("what?", 2)
            assert at.outputs() == [("c1", "42")]

    run(main())


def test_a_script_says_what_was_not_used_and_what_was_not_expected(run):
    async def main():
        model = ScriptedRealtimeModel(
            [
                RealtimeStep(
                    RealtimeModelSendUserInput("hi"),
                    [
                        RealtimeModelTurnStartedEvent(response_id="r"),
                        RealtimeModelTurnEndedEvent(response_id="r"),
                    ],
                )
            ]
        )
        async with RealtimeRunner(RealtimeAgent("a"), model=model).run() as session:
            heard = Heard(session)
            with pytest.raises(AssertionError, match="not used"):
                model.assert_complete()
            await session.send_message("hi")
            await heard.until_shown("agent_end")
            model.assert_complete()
        await heard.task

    run(main())


def test_tools_and_guardrails_of_the_sdks_spelling_work_in_a_session(run):
    import agents

    from offbook.actors.realtime.local import Call

    @agents.function_tool
    def look(context: agents.RunContextWrapper, where: str) -> str:
        """Look."""
        return f"{context.context['who']} found it in {where}"

    @agents.function_tool(needs_approval=True)
    def pay() -> str:
        """Pay."""
        return "paid"

    @agents.output_guardrail
    async def no_secrets(context, agent, output):
        return agents.GuardrailFunctionOutput(
            output_info=None, tripwire_triggered="secret" in output
        )

    async def main():
        agent = RealtimeAgent(name="a", tools=[look, pay], output_guardrails=[no_secrets])
        replies = (
            Reply(Call("look", '{"where": "Rome"}', "c")),
            Reply(Call("pay", "{}", "p")),
            Reply(Say("a secret")),
            Reply(Say("Sorry.")),
        )
        async with desk(agent, *replies, context={"who": "Ada"}) as at:
            await at.session.send_message("look")
            await at.heard.until_shown("tool_approval_required")
            await at.session.approve_tool_call("p")
            await at.heard.until_shown("guardrail_tripped")
            await at.heard.until_shown("agent_end", 4)
            assert at.outputs() == [("c", "Ada found it in Rome"), ("p", "paid")]

    run(main())


def test_a_missing_extra_is_named(run, monkeypatch):
    async def main():
        monkeypatch.setitem(sys.modules, "websockets.asyncio.client", None)
        with pytest.raises(UsageError, match=r"offbook\[realtime\]"):
            await (
                RealtimeRunner(RealtimeAgent("a"), model=realtime.OpenAIRealtimeModel(api_key="k"))
                .run()
                .__aenter__()
            )

    run(main())


def test_a_missing_key_is_said(run, monkeypatch):
    async def main():
        monkeypatch.delenv("OPENAI_API_KEY", raising=False)
        with pytest.raises(UsageError, match="OPENAI_API_KEY"):
            await RealtimeRunner(RealtimeAgent("a")).run().__aenter__()

    run(main())
