"""examples/voice_phone.py, called by a telephone of Twilio's manner: mu-law both ways, marks, an
interruption, an approval by a key, and signatures.
"""

import asyncio
import base64
import hashlib
import hmac
import json

import aiohttp
import pytest

from tests.doubles.served_example import served_example

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]

TOKEN = "the-token"
LOUD, QUIET = bytes([0x90, 0x10] * 80), b"\xff" * 160  # 20 ms each


def signature(text):
    return {
        "x-twilio-signature": base64.b64encode(
            hmac.new(TOKEN.encode(), text.encode(), hashlib.sha1).digest()
        ).decode()
    }


class Telephone:
    """The telephone's end of a media stream."""

    def __init__(self, socket):
        self.socket = socket

    async def tell(self, event, **more):
        await self.socket.send_json({"event": event, "streamSid": "MZ1", **more})

    async def say_something(self):
        for chunk in [LOUD] * 10 + [QUIET] * 30:
            await self.tell(
                "media", media={"track": "inbound", "payload": base64.b64encode(chunk).decode()}
            )

    async def until(self, event):
        """What comes, up to a message of that kind."""
        seen = []
        async for message in self.socket:
            seen.append(json.loads(message.data))
            if seen[-1]["event"] == event:
                return seen
        raise AssertionError(f"the line was cut before {event}: {seen}")

    async def hear_marks(self, count):
        """Play so many pieces, and send their marks back."""
        sound = b""
        for _ in range(count):
            *pieces, mark = await self.until("mark")
            sound += b"".join(base64.b64decode(one["media"]["payload"]) for one in pieces)
            await self.tell("mark", mark=mark["mark"])
        return sound


async def printed(stream, text):
    """Wait until the example has printed that."""
    async for line in stream:
        if text in line.decode():
            return
    raise AssertionError(f"it never printed {text!r}")


def test_a_telephone_call(run):
    async def main():
        async with (
            served_example("voice_phone") as (port, output),
            aiohttp.ClientSession() as http,
            asyncio.timeout(60),
        ):
            async with http.post(f"http://127.0.0.1:{port}/incoming") as answer:
                assert '<Stream url="ws://' in await answer.text()
            async with http.ws_connect(f"http://127.0.0.1:{port}/media") as socket:
                phone = Telephone(socket)
                await phone.tell("connected", protocol="Call")
                await phone.tell(
                    "start",
                    start={
                        "mediaFormat": {
                            "encoding": "audio/x-mulaw",
                            "sampleRate": 8000,
                            "channels": 1,
                        }
                    },
                )
                await phone.say_something()
                greeting = await phone.hear_marks(15)  # 1.5 s, in pieces of 100 ms
                await phone.say_something()
                await printed(output, "triage hands over to billing")
                await printed(output, "find_invoice: Invoice 7")
                await phone.hear_marks(10)  # of 6 s; the rest is not heard
                await phone.say_something()
                await phone.until("clear")
                await printed(output, "waits: 1 approves")
                await phone.tell("dtmf", dtmf={"digit": "7"})
                await phone.tell("dtmf", dtmf={"digit": "1"})
                await printed(output, "refund: 40 euros of invoice 7 are on their way.")
                await phone.until("mark")
                await phone.tell("stop")
                async for _ in socket:
                    pass
                return len(greeting), socket.close_code

    assert run(main()) == (1_500 * 8, 1000)


def test_what_twilio_has_not_signed_is_refused(run):
    async def main():
        environment = {"TWILIO_AUTH_TOKEN": TOKEN, "PUBLIC_URL": "https://desk.example.com"}
        async with (
            served_example("voice_phone", **environment) as (port, _),
            aiohttp.ClientSession(f"http://127.0.0.1:{port}") as http,
        ):
            form = {"To": "+1", "CallSid": "CA1"}
            async with http.post("/incoming", data=form) as unsigned:
                pass
            async with http.post(
                "/incoming",
                data=form,
                headers=signature("https://desk.example.com/incomingCallSidCA1To+1"),
            ) as signed:
                told = await signed.text()
            with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
                await http.ws_connect("/media")
            async with http.ws_connect(
                "/media", headers=signature("wss://desk.example.com/media")
            ) as socket:
                await socket.send_json({"event": "connected"})
            return unsigned.status, signed.status, told, refused.value.status

    unsigned, signed, told, refused = run(main())
    assert (unsigned, signed, refused) == (403, 200, 403)
    assert (
        told
        == '<Response><Connect><Stream url="wss://desk.example.com/media"/></Connect></Response>'
    )
