"""A browser page for spoken conversations with the help desk of voice_desk.py. It shows the active
agent, the transcript, tools, approvals, and your interruptions.

    pip install 'offbook[realtime]' fastapi uvicorn
    # without a key: a local server with scripted lines; make any sound
    python examples/voice_browser.py
    # with OpenAI
    OPENAI_API_KEY=... python examples/voice_browser.py

Then open http://127.0.0.1:8000. The page sends PCM16 at 24 kHz over a websocket, and reports its
output's progress, so that an interrupted agent knows how much the listener heard. The key stays in
this process. On another machine, use authentication and TLS; browsers allow a microphone only with
TLS.
"""

import json
import os
from array import array
from typing import Any
from urllib.parse import urlsplit

import uvicorn
from fastapi import FastAPI, WebSocket, WebSocketDisconnect
from fastapi.responses import HTMLResponse
from voice_desk import triage
from voice_line import answer_approval, line, until_one_ends

from offbook import OffbookError
from offbook.actors.realtime import RealtimePlaybackTracker, RealtimeRunner, RealtimeSession

app = FastAPI()


@app.get("/")
async def page() -> HTMLResponse:
    # The page contains its script and loads nothing, so injected scripts do not run.
    policy = (
        "default-src 'none'; script-src 'unsafe-inline' blob:; worker-src blob:; style-src "
        "'unsafe-inline'; connect-src 'self'"
    )
    return HTMLResponse(
        PAGE, headers={"content-security-policy": policy, "x-frame-options": "DENY"}
    )


@app.websocket("/call")
async def call(socket: WebSocket) -> None:
    """Bridge one call: the microphone to the session, the session's events to the page."""
    if urlsplit(socket.headers.get("origin", "")).netloc != socket.headers.get("host"):
        # Browsers let any site connect to this port.
        await socket.close(1008, "a page of another site asks")
        return
    await socket.accept()
    played = RealtimePlaybackTracker()
    try:
        async with (
            line(loudness, 2) as (model, prepare),
            RealtimeRunner(triage, model=model).run(
                model_config={"playback_tracker": played}
            ) as session,
        ):
            await until_one_ends(hear(socket, session, played, prepare), tell(socket, session))
        await socket.close()
    except WebSocketDisconnect:
        pass  # the caller has hung up
    except OffbookError as error:
        await socket.send_json({"type": "error", "text": str(error)})
        await socket.close(1011)


def loudness(chunk: bytes) -> float:
    """Return the loudness of PCM16, from 0 to 1."""
    samples = array("h", chunk)
    return sum(map(abs, samples)) / max(1, len(samples)) / 32_768


async def hear(
    socket: WebSocket, session: RealtimeSession, played: RealtimePlaybackTracker, prepare: Any
) -> None:
    """Receive sound, playback progress and answers from the page."""
    while True:
        message = await socket.receive()
        if message["type"] == "websocket.disconnect":
            raise WebSocketDisconnect(message.get("code", 1000))
        if (sound := message.get("bytes")) is not None:
            await session.send_audio(prepare(sound))
            continue
        told = json.loads(message["text"])
        if told["type"] == "played":
            played.on_play_ms(told["item"], told["part"], told["ms"])
        elif told["type"] == "answer":
            await answer_approval(session, told["call"], approved=told["approved"])


async def tell(socket: WebSocket, session: RealtimeSession) -> None:
    """Send events to the page. A message with the item precedes each binary chunk of sound."""
    await socket.send_json({"type": "agent", "name": session.current_agent.name})
    async for event in session:
        told: dict[str, Any] | None = None
        if event.type == "audio":
            await socket.send_json(
                {"type": "audio", "item": event.item_id, "part": event.content_index}
            )
            await socket.send_bytes(event.audio.data)
        elif event.type == "audio_interrupted":
            told = {"type": "interrupted"}
        elif event.type == "handoff":
            told = {"type": "agent", "name": event.to_agent.name}
        elif event.type == "tool_start":
            told = {
                "type": "tool",
                "call": event.call_id,
                "text": f"{event.tool.name} {event.arguments} …",
            }
        elif event.type == "tool_end":
            told = {
                "type": "tool",
                "call": event.call_id,
                "text": f"{event.tool.name}: {event.output}",
            }
        elif event.type == "tool_approval_required":
            told = {
                "type": "approval",
                "call": event.call_id,
                "text": f"{event.tool.name} {event.arguments}",
            }
        elif event.type == "error":
            told = {"type": "error", "text": str(event.error)}
        elif event.type in ("history_added", "history_updated"):
            told = {
                "type": "talk",
                "lines": [said(item) for item in session.history if item.type == "message"],
            }
        if told is not None:
            await socket.send_json(told)


def said(item: Any) -> dict[str, str]:
    texts = (
        getattr(part, "transcript", None) or getattr(part, "text", None) or ""
        for part in item.content
    )
    return {"who": item.role, "text": " ".join(texts)}


PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><title>Help desk</title><meta name="viewport" content="width=device-width">
<style>
  body { font: 16px/1.5 system-ui, sans-serif; max-width: 44rem; margin: 2rem auto; padding: 0 1rem; color-scheme: light dark }
  #talk p { margin: .3rem 0 } .user { text-align: right } .cut { opacity: .6 } li { list-style: none } ul { padding: 0 }
</style>
<h1>Help desk</h1>
<p><button id="start">Speak</button> <span id="agent" role="status"></span> <span id="state"></span></p>
<div id="talk" aria-live="polite"></div><h2>What it does</h2><ul id="tools"></ul><p id="error" role="alert"></p>
<script>
const at = (id) => document.getElementById(id);
// All that is shown goes through here: as text, whatever it contains.
const show = (parent, tag, text, name = "") => {
  const made = document.createElement(tag);
  made.textContent = text; made.className = name; parent.append(made);
  return made;
};
const WORKLET = `
registerProcessor("microphone", class extends AudioWorkletProcessor {
  kept = new Int16Array(480); at = 0;
  process([[samples]]) {
    for (const one of samples ?? []) {
      this.kept[this.at++] = Math.max(-1, Math.min(1, one)) * 32767;
      if (this.at === 480) { this.port.postMessage(this.kept.slice()); this.at = 0; }
    }
    return true;
  }
});
registerProcessor("loudspeaker", class extends AudioWorkletProcessor {
  queue = []; played = 0;
  constructor() { super(); this.port.onmessage = ({data}) => { if (data) this.queue.push({...data, at: 0}); else { this.queue = []; this.played = 0; } }; }
  tell(now) { if (this.played) this.port.postMessage({item: now.item, part: now.part, ms: this.played / 24}); this.played = 0; }
  process(_, [[out]]) {
    let filled = 0;
    while (filled < out.length && this.queue.length) {
      const now = this.queue[0], count = Math.min(out.length - filled, now.samples.length - now.at);
      for (let i = 0; i < count; i++) out[filled + i] = now.samples[now.at + i] / 32768;
      filled += count; now.at += count; this.played += count;
      if (now.at === now.samples.length) { this.queue.shift(); if (this.queue[0]?.item !== now.item) this.tell(now); }
      if (this.played >= 2400) this.tell(now);
    }
    if (filled || this.busy) this.port.postMessage({busy: this.busy = filled > 0});
    return true;
  }
});`;
async function start() {
  at("start").disabled = true;
  const stream = await navigator.mediaDevices.getUserMedia({audio: {echoCancellation: true, channelCount: 1}});
  const sound = new AudioContext({sampleRate: 24000});
  const code = URL.createObjectURL(new Blob([WORKLET], {type: "text/javascript"}));
  await sound.audioWorklet.addModule(code);
  const microphone = new AudioWorkletNode(sound, "microphone"), loudspeaker = new AudioWorkletNode(sound, "loudspeaker");
  sound.createMediaStreamSource(stream).connect(microphone); loudspeaker.connect(sound.destination);
  const socket = new WebSocket(location.href.replace(/^http/, "ws").replace(/[^/]*$/, "call"));
  socket.binaryType = "arraybuffer";
  const tell = (told) => { if (socket.readyState === 1) socket.send(told); };
  // What a slow network does not take is dropped: late sound helps no one.
  microphone.port.onmessage = ({data}) => { if (socket.bufferedAmount < 65536) tell(data.buffer); };
  let speaks = false, header = null;
  loudspeaker.port.onmessage = ({data}) => {
    if ("busy" in data) { if (data.busy !== speaks) { speaks = data.busy; at("state").textContent = speaks ? "speaks" : "listens"; } }
    else tell(JSON.stringify({type: "played", ...data}));
  };
  const tools = {};
  const on = {
    audio: (told) => { header = told; },
    agent: (told) => { at("agent").textContent = told.name; },
    interrupted: () => { loudspeaker.port.postMessage(null); show(at("tools"), "li", "You interrupted.", "cut"); },
    tool: (told) => { (tools[told.call] ??= show(at("tools"), "li", "")).textContent = told.text; },
    error: (told) => { at("error").textContent = told.text; },
    talk: (told) => { at("talk").replaceChildren(); for (const one of told.lines) show(at("talk"), "p", one.text, one.who); },
    approval: (told) => {
      const row = show(at("tools"), "li", told.text + " ");
      for (const [label, approved] of [["Approve", true], ["Deny", false]])
        show(row, "button", label).onclick = () => { row.remove(); tell(JSON.stringify({type: "answer", call: told.call, approved})); };
    },
  };
  socket.onmessage = ({data}) => {
    if (typeof data === "string") { const told = JSON.parse(data); on[told.type](told); }
    else loudspeaker.port.postMessage({item: header.item, part: header.part, samples: new Int16Array(data)});
  };
  socket.onclose = () => { stream.getTracks().forEach((one) => one.stop()); sound.close(); at("state").textContent = "ended"; at("start").disabled = false; };
}
at("start").onclick = () => start().catch((error) => { at("error").textContent = String(error); at("start").disabled = false; });
</script></html>
"""

if __name__ == "__main__":
    uvicorn.run(
        app,
        host="127.0.0.1",
        port=int(os.environ.get("PORT", "8000")),
        ws="websockets-sansio",
        timeout_graceful_shutdown=2,
    )
