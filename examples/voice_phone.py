"""A telephone for spoken conversations with the help desk of voice_desk.py: media streams in
Twilio's form, G.711 mu-law both ways.

    pip install 'offbook[realtime]' fastapi uvicorn
    # without a key: a local server with scripted lines
    python examples/voice_phone.py

For real calls, you need a Twilio number, and a tunnel or a proxy with TLS for port 8000:

    OPENAI_API_KEY=... TWILIO_AUTH_TOKEN=... PUBLIC_URL=https://desk.example.com \\
        python examples/voice_phone.py

Set the number's webhook for incoming calls to https://desk.example.com/incoming (POST). Nothing is
converted: the session uses the telephone's format. The telephone returns each mark when the audio
before it was heard. A caller has no screen: the key 1 approves a refund, 2 denies it.
"""

import base64
import hashlib
import hmac
import json
import os
import sys
from collections import deque
from collections.abc import Callable, Mapping
from urllib.parse import parse_qsl
from xml.sax.saxutils import quoteattr

import uvicorn
from fastapi import FastAPI, Request, Response, WebSocket, WebSocketDisconnect
from voice_desk import triage
from voice_line import answer_approval, line, until_one_ends

from offbook import OffbookError
from offbook.actors.realtime import (
    RealtimePlaybackTracker,
    RealtimeRunConfig,
    RealtimeRunner,
    RealtimeSession,
)

app = FastAPI()
PUBLIC_URL = os.environ.get("PUBLIC_URL", "http://127.0.0.1:8000")
FORMAT: RealtimeRunConfig = {
    "model_settings": {"input_audio_format": "g711_ulaw", "output_audio_format": "g711_ulaw"}
}


def is_signed(url: str, form: Mapping[str, str], headers: Mapping[str, str]) -> bool:
    """Return whether Twilio sent the request. Without a token, accept every request."""
    token = os.environ.get("TWILIO_AUTH_TOKEN")
    if token is None:
        return True
    text = url + "".join(f"{name}{form[name]}" for name in sorted(form))
    wanted = base64.b64encode(hmac.new(token.encode(), text.encode(), hashlib.sha1).digest())
    return hmac.compare_digest(wanted, headers.get("x-twilio-signature", "").encode())


@app.post("/incoming")
async def incoming(request: Request) -> Response:
    """Answer an incoming call: stream it to `/media`."""
    form = dict(parse_qsl((await request.body()).decode(), keep_blank_values=True))
    if not is_signed(f"{PUBLIC_URL}/incoming", form, request.headers):
        return Response(status_code=403)
    url = f"{PUBLIC_URL.replace('http', 'ws', 1)}/media"
    return Response(
        f"<Response><Connect><Stream url={quoteattr(url)}/></Connect></Response>",
        media_type="text/xml",
    )


@app.websocket("/media")
async def media(socket: WebSocket) -> None:
    """Bridge one call, from its first message to its last."""
    if not is_signed(f"{PUBLIC_URL.replace('http', 'ws', 1)}/media", {}, socket.headers):
        await socket.close(1008)
        return
    await socket.accept()
    try:
        while (begun := await socket.receive_json())["event"] != "start":
            pass  # "connected" comes before it
        phone = Phone(socket, begun["streamSid"])
        async with (
            line(loudness, 1) as (model, prepare),
            RealtimeRunner(triage, model=model, config=FORMAT).run(
                model_config={"playback_tracker": phone.played}
            ) as session,
        ):
            await until_one_ends(phone.hear(session, prepare), phone.speak(session))
        await socket.close()
    except WebSocketDisconnect:
        pass  # the connection is closed
    except OffbookError as error:
        print(f"the call has ended: {error}")
        await socket.close(1011)


def loudness(chunk: bytes) -> float:
    """Return the loudness of mu-law, from 0 to 1: the upper bits are the exponent."""
    return sum(1 << ((~one >> 4) & 7) for one in chunk) / max(1, len(chunk)) / 128


class Phone:
    """The telephone's side of a call: the sound that was sent, and its progress."""

    def __init__(self, socket: WebSocket, stream: str) -> None:
        self.played = RealtimePlaybackTracker()
        self.played.set_audio_format("g711_ulaw")
        self._socket = socket
        self._stream = stream
        self._marks: deque[tuple[str, str, int, bytes]] = deque()  # sent, and not heard yet
        self._number = 0

    async def hear(self, session: RealtimeSession, prepare: Callable[[bytes], bytes]) -> None:
        """Receive the telephone's messages until the caller hangs up."""
        while (told := await self._socket.receive_json())["event"] != "stop":
            if told["event"] == "media":
                await session.send_audio(prepare(base64.b64decode(told["media"]["payload"])))
            elif told["event"] == "mark":
                self._was_played(told["mark"]["name"])
            elif (
                told["event"] == "dtmf"
                and (pending := session.pending_approvals)
                and told["dtmf"]["digit"] in ("1", "2")
            ):
                await answer_approval(
                    session, pending[0].call_id, approved=told["dtmf"]["digit"] == "1"
                )

    def _was_played(self, name: str) -> None:
        # After a clear, the telephone also returns the marks of discarded sound: ignore them.
        if self._marks and self._marks[0][0] == name:
            _, item, part, audio = self._marks.popleft()
            self.played.on_play_bytes(item, part, audio)

    async def speak(self, session: RealtimeSession) -> None:
        """Send the session's events to the telephone."""
        async for event in session:
            if event.type == "audio":
                self._number += 1
                self._marks.append(
                    (str(self._number), event.item_id, event.content_index, event.audio.data)
                )
                await self._tell(
                    "media", media={"payload": base64.b64encode(event.audio.data).decode()}
                )
                await self._tell("mark", mark={"name": str(self._number)})
            elif event.type == "audio_interrupted":
                self._marks.clear()
                await self._tell("clear")
            elif event.type == "handoff":
                print(f"{event.from_agent.name} hands over to {event.to_agent.name}")
            elif event.type == "tool_approval_required":
                print(f"{event.tool.name} {event.arguments} waits: 1 approves, 2 denies")
            elif event.type == "tool_end":
                print(f"{event.tool.name}: {event.output}")
            elif event.type == "error":
                print(f"error: {event.error}")

    async def _tell(self, event: str, **more: object) -> None:
        await self._socket.send_text(
            json.dumps({"event": event, "streamSid": self._stream, **more})
        )


if __name__ == "__main__":
    if "PUBLIC_URL" in os.environ and "TWILIO_AUTH_TOKEN" not in os.environ:
        sys.exit(
            "PUBLIC_URL is set and TWILIO_AUTH_TOKEN is not: anyone could call, at your "
            "cost. It is in Twilio's console."
        )
    uvicorn.run(
        app,
        host="127.0.0.1",
        port=int(os.environ.get("PORT", "8000")),
        ws="websockets-sansio",
        timeout_graceful_shutdown=2,
    )
