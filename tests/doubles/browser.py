"""A real Chromium without a window, driven over its DevTools protocol as a person would: a page is
opened, things are clicked and typed, and what stands there is read.
"""

import asyncio
import base64
import contextlib
import json
import os
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

import aiohttp
import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")
PATIENCE = 40


def chromium():
    """Where it is.

    Without one, the test is skipped: `.ci/run` installs it, or ends, but for systems whose packages
    have none.
    """
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        pytest.skip("there is no Chromium here: tests/install_servers installs it")
    return found


class Browser:
    """`async with Browser() as browser: page = await browser.open(url)`."""

    def __init__(self, *, width=1280, height=860, scheme="light", options=()):
        self.size = width, height
        self.options = options
        self.scheme = scheme
        self.folder = None
        self.process = None

    async def __aenter__(self):
        program = chromium()
        self.folder = Path(tempfile.mkdtemp(prefix="offbook-browser-"))
        options = [
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--no-first-run",
            "--disable-dev-shm-usage",
            "--disable-extensions",
            "--mute-audio",
        ]
        options += [
            "--disable-background-networking",
            "--disable-component-update",
            "--hide-scrollbars",
            "--force-device-scale-factor=1",
            "--lang=en",
        ]
        command = [
            program,
            *options,
            *self.options,
            f"--user-data-dir={self.folder}",
            f"--window-size={self.size[0]},{self.size[1]}",
            "--remote-debugging-port=0",
            "about:blank",
        ]
        with (self.folder / "log").open("wb") as log:
            self.process = await asyncio.to_thread(
                subprocess.Popen,
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        try:
            async with asyncio.timeout(PATIENCE):
                port = await self._port()
            self.session = aiohttp.ClientSession(f"http://127.0.0.1:{port}")
        except BaseException:
            await self._end()
            raise
        return self

    async def _port(self):
        """It writes it into a file when it listens."""
        place = self.folder / "DevToolsActivePort"
        while not (place.exists() and (lines := place.read_text().splitlines()) and len(lines) > 1):
            assert self.process.poll() is None, (self.folder / "log").read_text()[-2000:]
            await asyncio.sleep(0.02)
        return int(lines[0])

    async def __aexit__(self, *_):
        await self.session.close()
        await self._end()

    async def _end(self):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        await asyncio.to_thread(self.process.wait)
        shutil.rmtree(self.folder, ignore_errors=True)

    async def open(self, url, *, phone=False):
        """A new page at that address."""
        async with self.session.put("/json/new?about:blank") as answer:
            target = json.loads(await answer.text())
        socket = await self.session.ws_connect(target["webSocketDebuggerUrl"], max_msg_size=0)
        page = Page(socket)
        for domain in ("Page", "Runtime", "Log", "Network"):
            await page.call(f"{domain}.enable")
        await page.look(self.scheme)
        if phone:
            await page.call(
                "Emulation.setDeviceMetricsOverride",
                width=390,
                height=844,
                deviceScaleFactor=2,
                mobile=True,
            )
        await page.go(url)
        return page


class Page:
    """One page.

    What its scripts have complained of is in `problems`, which addresses it has asked for in
    `asked`.
    """

    def __init__(self, socket):
        self._socket = socket
        self._number = 0
        self._answers = {}
        self._loaded = asyncio.Event()
        self.problems = []
        self.asked = []
        self._trace = []
        self._traced = asyncio.Event()
        self._reading = asyncio.ensure_future(self._read())

    async def _read(self):
        async for message in self._socket:
            found = json.loads(message.data)
            if "id" in found:
                self._answers.pop(found["id"]).set_result(found)
            else:
                self._happened(found["method"], found["params"])

    def _happened(self, method, about):
        if method == "Page.loadEventFired":
            self._loaded.set()
        elif method == "Runtime.exceptionThrown":
            self.problems.append(
                about["exceptionDetails"].get("exception", {}).get("description")
                or about["exceptionDetails"]["text"]
            )
        elif method == "Log.entryAdded" and about["entry"]["level"] == "error":
            self.problems.append(f"{about['entry']['text']} {about['entry'].get('url', '')}")
        elif method == "Tracing.dataCollected":
            self._trace += about["value"]
        elif method == "Tracing.tracingComplete":
            self._traced.set()
        elif method == "Network.requestWillBeSent":
            self.asked.append(about["request"]["url"])

    async def call(self, method, **options):
        self._number += 1
        number, answer = self._number, asyncio.get_running_loop().create_future()
        self._answers[number] = answer
        await self._socket.send_json({"id": number, "method": method, "params": options})
        async with asyncio.timeout(PATIENCE):
            found = await answer
        assert "error" not in found, f"{method}: {found.get('error')}"
        return found["result"]

    async def close(self):
        await self._socket.close()
        await self._reading

    async def look(self, scheme):
        await self.call(
            "Emulation.setEmulatedMedia",
            features=[{"name": "prefers-color-scheme", "value": scheme}],
        )

    async def go(self, url):
        self._loaded.clear()
        await self.call("Page.navigate", url=url)
        async with asyncio.timeout(PATIENCE):
            await self._loaded.wait()

    async def js(self, code):
        """What the code gives, as plain data. It may be a promise."""
        found = await self.call(
            "Runtime.evaluate",
            expression=code,
            awaitPromise=True,
            returnByValue=True,
            userGesture=True,
        )
        assert "exceptionDetails" not in found, (
            found["exceptionDetails"].get("exception", {}).get("description", found)
        )
        return found["result"].get("value")

    async def until(self, code):
        """Wait until that holds; it is looked at with each frame. Returns what it gives."""
        return await self.js(
            "new Promise((good, bad) => { const end = performance.now() + "
            f"{PATIENCE - 5}e3; const look = () => {{ let found; try {{ found = ({code}); }} "
            "catch { found = null; }"
            " if (found) good(found); else if (performance.now() > end) bad(new "
            f"Error({json.dumps(code)} + ' does not come. There is: ' + "
            "document.body.innerText.slice(0, 3000)));"
            " else setTimeout(look, 15); }; look(); })"
        )

    async def sees(self, text):
        """Wait until that text stands on the page."""
        await self.until(f"document.body.innerText.includes({json.dumps(text)})")

    async def click(self, text, within="body"):
        """Click on the button, link or summary with that text, with the mouse."""
        where = await self.until(
            "(() => { const found = "
            f"[...document.querySelectorAll({json.dumps(within)})].flatMap((place) => "
            "[...place.querySelectorAll('button, a, summary, label, [role=option]')])"
            ".find((one) => !one.disabled && one.offsetParent !== null && "
            f"one.innerText.trim().startsWith({json.dumps(text)}));"
            " if (!found) return null; found.scrollIntoView({block: 'center'}); const box = "
            "found.getBoundingClientRect(); return [box.x + box.width / 2, box.y + "
            "box.height / 2]; })()"
        )
        for kind in ("mousePressed", "mouseReleased"):
            await self.call(
                "Input.dispatchMouseEvent",
                type=kind,
                x=where[0],
                y=where[1],
                button="left",
                clickCount=1,
            )

    async def fill(self, label, text):
        """Write into the field of that name, in place of what is there."""
        field = (
            "[...document.querySelectorAll('input, textarea')].find((one) => one.offsetParent "
            f"!== null && one.ariaLabel === {json.dumps(label)})"
        )
        await self.until(
            f"(() => {{ const found = {field}; found?.focus(); found?.select(); return "
            "Boolean(found); })()"
        )
        await self.call("Input.insertText", text=text)

    async def choose(self, label, value):
        """Choose in the list of that name."""
        await self.until(
            "(() => { const found = [...document.querySelectorAll('select')].find((one) => "
            f"one.ariaLabel === {json.dumps(label)}); if (!found) return false;"
            f" found.value = {json.dumps(value)}; found.dispatchEvent(new Event('change', "
            f"{{bubbles: true}})); return found.value === {json.dumps(value)}; }})()"
        )

    async def press(self, key, text=None):
        """Press a key."""
        await self.call(
            "Input.dispatchKeyEvent",
            type="keyDown",
            key=key,
            **({"text": text if text is not None else key} if len(key) == 1 or text else {}),
        )
        await self.call("Input.dispatchKeyEvent", type="keyUp", key=key)

    async def traced(self, work):
        """Do that, and return for how many seconds of the processor each task of the page's thread
        took meanwhile: of other work of the machine it knows nothing.
        """
        self._trace.clear()
        self._traced.clear()
        await self.call(
            "Tracing.start",
            traceConfig={"includedCategories": ["toplevel"], "excludedCategories": ["*"]},
            transferMode="ReportEvents",
        )
        await work()
        await self.call("Tracing.end")
        async with asyncio.timeout(PATIENCE):
            await self._traced.wait()
        names = {
            (one["pid"], one["tid"]): one["args"].get("name")
            for one in self._trace
            if one["name"] == "thread_name"
        }
        tasks = (
            one
            for one in self._trace
            if one["name"].endswith("RunTask")
            and one["ph"] == "X"
            and names.get((one["pid"], one["tid"])) == "CrRendererMain"
        )
        return [one.get("tdur", 0) / 1e6 for one in tasks]

    async def text(self, selector="body"):
        return await self.js(f"document.querySelector({json.dumps(selector)})?.innerText ?? null")

    async def picture(self, path, *, whole=False):
        found = await self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        await asyncio.to_thread(Path(path).write_bytes, base64.b64decode(found["data"]))
