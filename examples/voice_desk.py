"""A spoken help desk: triage, billing and technical help.

It hands off during a call, asks before it pays, and continues after its process was killed.

    # a call with a local server: no key, no network, no sound card
    python examples/voice_desk.py
    # the same; the agents' speech is written to out.wav
    python examples/voice_desk.py call.wav
    # your microphone and loudspeaker, if `sounddevice` is installed
    OPENAI_API_KEY=... python examples/voice_desk.py --live
    # the file (24 kHz, 16 bits, one channel) is the caller's speech
    OPENAI_API_KEY=... python examples/voice_desk.py --live call.wav

With `--live` the call is stored in voice_desk.db: end it with Ctrl-C or `kill -9`, start it again,
and it continues.
"""

import asyncio
import sys
import tempfile
import wave
from pathlib import Path

from offbook import SQLiteStore, ToolContext, tool
from offbook.actors.realtime import (
    OpenAIRealtimeModel,
    RealtimeAgent,
    RealtimePlaybackTracker,
    RealtimeRunner,
    RealtimeSession,
    realtime_handoff,
)
from offbook.actors.realtime.local import Call, LocalRealtimeServer, Reply, Say, silence, speech

RATE = 24_000
paid: list[str] = []


@tool
def find_invoice(number: str) -> str:
    """Find an invoice by its number."""
    return f"Invoice {number}: 40 euros, charged twice."


@tool(needs_approval=True)
def refund(number: str, euros: int, context: ToolContext) -> str:
    """Pay money back."""
    # Pass it to your bank: a payment has the same key in every process.
    paid.append(context.idempotency_key)
    context.session["refunded"] = euros
    return f"{euros} euros of invoice {number} are on their way."


@tool
def restart_router(customer: str) -> str:
    """Restart a customer's router."""
    return f"The router of {customer} is starting."


billing = RealtimeAgent(
    "billing",
    "You know about bills. Look up the invoice before you refund.",
    tools=[find_invoice, refund],
    voice="marin",
)
technical = RealtimeAgent(
    "technical", "You know about routers.", tools=[restart_router], voice="marin"
)
triage = RealtimeAgent(
    "triage", "Find out whether it is about a bill or about the line, and hand over.", voice="marin"
)
triage.handoffs = [
    billing,
    realtime_handoff(technical, tool_description="For everything about the line."),
]
billing.handoffs = [triage, technical]
technical.handoffs = [triage, billing]


# Reports playback, so that an interrupted agent knows how much the listener heard.
played = RealtimePlaybackTracker()


async def show(
    session: RealtimeSession, loudspeaker: "wave.Wave_write | None", *, until: int
) -> None:
    """Print the events, output the speech, and approve the requests of the desk.

    Returns after so many turns of the agents'.
    """
    ended = 0
    async for event in session:
        if event.type == "audio":
            if loudspeaker is not None:
                loudspeaker.writeframes(event.audio.data)
            played.on_play_bytes(event.item_id, event.content_index, event.audio.data)
        elif event.type == "handoff":
            print(f"   ({event.from_agent.name} hands over to {event.to_agent.name})")
        elif event.type == "tool_end":
            print(f"   ({event.tool.name}: {event.output})")
        elif event.type == "tool_approval_required":
            print(f"   ({event.tool.name} {event.arguments}: approved)")
            await session.approve_tool_call(event.call_id)
        elif event.type == "error":
            print(f"   (error: {event.error})")
        elif event.type == "agent_end":
            ended += 1
            if ended == until:
                return


def print_talk(session: RealtimeSession) -> None:
    """Return the transcript so far."""
    for item in session.history:
        if item.type == "message":
            texts = [
                getattr(part, "transcript", None) or getattr(part, "text", None) or ""
                for part in item.content
            ]
            print(f"{item.role:>9}: {' '.join(texts)}")


async def say(session: RealtimeSession, text: str) -> None:
    """Send speech to the local server as a microphone does, in chunks of 20 ms."""
    audio = speech(text, 200) + silence(200)
    for start in range(0, len(audio), RATE // 25):
        await session.send_audio(audio[start : start + RATE // 25])


async def rehearse(wav: str | None) -> None:
    """Run a call with the local server."""
    lines = [
        Reply(Say("Hello. Is it about a bill, or about your line?")),
        Reply(Call("transfer_to_billing")),
        Reply(Call("find_invoice", '{"number": "7"}')),
        Reply(Say("I see it: you were charged twice. I can pay 40 euros back.")),
        Reply(Call("refund", '{"number": "7", "euros": 40}')),
        Reply(Say("It is done: 40 euros are on their way.")),
        Reply(Say("Welcome back. The refund of 40 euros is on its way. Anything else?")),
    ]
    with tempfile.TemporaryDirectory() as folder:
        store = SQLiteStore(Path(folder) / "desk.db")
        async with LocalRealtimeServer(lines) as server:
            runner = RealtimeRunner(
                triage,
                model=OpenAIRealtimeModel(base_url=server.base_url, api_key="none"),
                store=store,
            )
            loudspeaker = _wav_file(wav)
            try:
                async with runner.run(
                    session_id="caller-1", model_config={"playback_tracker": played}
                ) as session:
                    for text, turns in (
                        ("hello", 1),
                        ("I was charged twice, invoice 7", 3),
                        ("yes please, pay it back", 2),
                    ):
                        await say(session, text)
                        await show(session, loudspeaker, until=turns)
                    print_talk(session)
                # If the process ends here, the next one continues.
                print("--- another process ---")
                async with runner.run(
                    session_id="caller-1", model_config={"playback_tracker": played}
                ) as session:
                    print(
                        f"   ({session.current_agent.name} is in charge; refunded: "
                        f"{session.context.session['refunded']} euros)"
                    )
                    await session.send_message("it is me again")
                    await show(session, loudspeaker, until=1)
                    print_talk(session)
                assert len(paid) == 1
            finally:
                if loudspeaker is not None:
                    loudspeaker.close()


async def live(wav: str | None) -> None:
    """Run a call with OpenAI."""
    runner = RealtimeRunner(triage, store=SQLiteStore("voice_desk.db"))
    async with runner.run(
        session_id="caller-1", busy="queue", model_config={"playback_tracker": played}
    ) as session:
        print("Speak." if wav is None else f"What is in {wav} is said.")
        if wav is not None:
            loudspeaker = _wav_file("out.wav")
            sending = asyncio.create_task(_send_file(session, wav))
            try:
                await show(session, loudspeaker, until=1)
                print_talk(session)
            finally:
                sending.cancel()
                await asyncio.gather(sending, return_exceptions=True)
                if loudspeaker is not None:
                    loudspeaker.close()
            return
        await _with_microphone(session)


async def _send_file(session: RealtimeSession, wav: str) -> None:
    with wave.open(wav, "rb") as file:
        if (file.getframerate(), file.getsampwidth(), file.getnchannels()) != (RATE, 2, 1):
            sys.exit(
                f"{wav}: give 24 kHz, 16 bits, one channel: ffmpeg -i {wav} -ar 24000 -ac 1 "
                "-sample_fmt s16 call.wav"
            )
        while data := file.readframes(RATE // 50):
            await session.send_audio(data)
            await asyncio.sleep(0.02)
    for _ in range(100):  # the server detects the end of speech by silence
        await session.send_audio(b"\0" * (RATE // 50 * 2))
        await asyncio.sleep(0.02)


async def _with_microphone(session: RealtimeSession) -> None:
    try:
        import sounddevice  # type: ignore[import-not-found, unused-ignore]  # noqa: PLC0415 -- only where there is sound
    except (ImportError, OSError):
        sys.exit(
            "There is no sound here: pip install sounddevice, or give a WAV file: "
            "voice_desk.py --live call.wav"
        )
    player = sounddevice.RawOutputStream(samplerate=RATE, channels=1, dtype="int16")
    # The sound card calls this in another thread; sound beyond the buffer is dropped.
    microphone = sounddevice.RawInputStream(
        samplerate=RATE,
        channels=1,
        dtype="int16",
        blocksize=RATE // 50,
        callback=lambda data, *_: session.send_audio_nowait(bytes(data)),
    )
    with player, microphone:
        async for event in session:
            if event.type == "audio":
                await asyncio.to_thread(player.write, event.audio.data)
                played.on_play_bytes(event.item_id, event.content_index, event.audio.data)
            elif event.type == "audio_interrupted":
                player.abort()
                player.start()
            elif event.type == "tool_approval_required":
                answer = await asyncio.to_thread(
                    input, f"{event.tool.name} {event.arguments}: approve? [y/N] "
                )
                if answer.lower().startswith("y"):
                    await session.approve_tool_call(event.call_id)
                else:
                    await session.reject_tool_call(event.call_id)
            elif event.type == "history_added" and event.item.type == "message":
                print_talk(session)


def _wav_file(path: str | None) -> "wave.Wave_write | None":
    if path is None:
        return None
    target = "out.wav" if path.endswith("call.wav") else path
    file = wave.open(target, "wb")  # noqa: SIM115 -- it is closed by whoever asked for it
    file.setnchannels(1)
    file.setsampwidth(2)
    file.setframerate(RATE)
    return file


def main() -> None:
    names = [one for one in sys.argv[1:] if not one.startswith("--")]
    wav = names[0] if names else None
    try:
        asyncio.run(live(wav) if "--live" in sys.argv else rehearse(wav))
    except KeyboardInterrupt:
        print("\nThe call is kept: start again, and it goes on.")


if __name__ == "__main__":
    main()
