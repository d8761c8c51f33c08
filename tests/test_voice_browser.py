"""examples/voice_browser.py in a real Chromium that hears a WAV file: handed over, a tool, an
interruption, an approval; and whom it does not let in.
"""

import math
import struct
import wave

import aiohttp
import pytest

from tests.doubles.browser import Browser
from tests.doubles.served_example import served_example

RATE = 24_000

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]


def write_voice(path):
    """Something like a vowel for 0.7 s, then quiet for 1.8 s. Chromium plays it again and again."""
    vowel = [
        sum(math.sin(2 * math.pi * 130 * k * n / RATE) / k for k in range(1, 20))
        * (0.6 + 0.4 * math.sin(2 * math.pi * 4 * n / RATE))
        for n in range(RATE * 7 // 10)
    ]
    samples = [int(9_000 * one) for one in vowel] + [0] * (RATE * 18 // 10)
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(RATE)
        file.writeframes(struct.pack(f"<{len(samples)}h", *samples))


def test_a_call_from_a_browser(run, tmp_path):
    write_voice(tmp_path / "voice.wav")
    options = [
        "--use-fake-device-for-media-stream",
        "--use-fake-ui-for-media-stream",
        "--autoplay-policy=no-user-gesture-required",
    ]

    async def main():
        async with (
            served_example("voice_browser") as (port, _),
            Browser(
                options=[*options, f"--use-file-for-fake-audio-capture={tmp_path}/voice.wav"]
            ) as browser,
        ):
            page = await browser.open(f"http://127.0.0.1:{port}/")
            try:
                await page.click("Speak")
                await page.sees("Is it about a bill")
                await page.sees("I was charged twice, invoice 7")
                await page.until("document.querySelector('#agent').textContent === 'billing'")
                await page.sees("find_invoice: Invoice 7: 40 euros, charged twice.")
                await page.sees("You interrupted.")
                await page.click("Approve")
                await page.sees("refund: 40 euros of invoice 7 are on their way.")
                return page.problems
            finally:
                await page.close()

    assert [one for one in run(main()) if "favicon" not in one] == []


def test_a_page_of_another_site_gets_no_call(run):
    async def main():
        async with served_example("voice_browser") as (port, _), aiohttp.ClientSession() as http:
            with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
                await http.ws_connect(
                    f"http://127.0.0.1:{port}/call", origin="https://elsewhere.example"
                )
            return refused.value.status

    assert run(main()) == 403
