"""A webhook that writes down what it is sent, on the test's own loop."""

import asyncio
import json
import socket

import uvicorn

from tests.doubles import quick_uvicorn


class Webhook:
    """`hold`: an event for which each call waits before it is answered.

    `answers`: what the first calls are answered with; later ones with 200.
    """

    def __init__(self, *, hold=None, answers=(), location=None, ssl=None):
        self.calls, self.headers, self.paths = [], [], []
        self._hold, self._answers, self._location = hold, list(answers), location
        self._came = asyncio.Event()
        self._ssl = ssl or {}

    async def __call__(self, scope, receive, send):
        assert scope["type"] == "http"
        body = b""
        while True:
            message = await receive()
            body += message.get("body", b"")
            if not message.get("more_body"):
                break
        self.calls.append(json.loads(body))
        self.headers.append({name.decode(): value.decode() for name, value in scope["headers"]})
        self.paths.append(scope["path"])
        self._came.set()
        if self._hold is not None:
            await self._hold.wait()
        status = self._answers.pop(0) if self._answers else 200
        headers = [(b"location", self._location.encode())] if self._location else []
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": b""})

    async def until(self, count):
        """Wait until it was called so often."""
        async with asyncio.timeout(20):
            while len(self.calls) < count:
                self._came.clear()
                await self._came.wait()

    async def __aenter__(self):
        self._socket = socket.socket()
        self._socket.bind(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}/hook"
        self._server = quick_uvicorn.Server(
            uvicorn.Config(
                self, log_level="error", lifespan="off", timeout_graceful_shutdown=1, **self._ssl
            )
        )
        self._task = asyncio.create_task(self._server.serve(sockets=[self._socket]))
        while not self._server.started:
            await asyncio.sleep(0.001)
        return self

    async def __aexit__(self, *_):
        if self._hold is not None:
            self._hold.set()
        self._server.should_exit = True
        await self._task
        self._socket.close()
