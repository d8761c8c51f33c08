"""A session that speaks with the strict server on loopback, and a consumer that notes what it is
shown.
"""

import asyncio
from contextlib import asynccontextmanager

from offbook.actors.realtime import OpenAIRealtimeModel, RealtimeRunner
from offbook.actors.realtime.local import LocalRealtimeServer
from offbook.runtime import ActorSystem


async def until(condition):
    """Let the loop go on until that holds."""
    while not condition():
        await asyncio.sleep(0)


class Heard:
    """What a consumer was shown."""

    def __init__(self, session):
        self.session = session
        self.events = []
        self.error = None
        self._changed = asyncio.Event()
        self.task = asyncio.create_task(self._take())

    async def _take(self):
        try:
            async for event in self.session:
                self.events.append(event)
                self._changed.set()
        except Exception as error:
            self.error = error
        finally:
            self.ended = True
            self._changed.set()

    ended = False

    def of(self, *kinds):
        return [event for event in self.events if event.type in kinds]

    def kinds(self, *without):
        return [
            event.type
            for event in self.events
            if event.type not in ("raw_model_event", "audio", "history_updated", *without)
        ]

    async def until(self, condition):
        while not condition():
            assert not self.ended, f"the session has ended: {self.error!r}, {self.kinds()}"
            self._changed.clear()
            await self._changed.wait()

    async def until_shown(self, kind, count=1):
        await self.until(lambda: len(self.of(kind)) >= count)
        return self.of(kind)


class Desk:
    """A server, a session with it, and its consumer."""

    def __init__(self, server, session, heard, system):
        self.server, self.session, self.heard, self.system = server, session, heard, system

    async def ask(self, text, responses=1, **options):
        """Send a text, and wait until so many more responses have ended."""
        before = len(self.heard.of("agent_end")) if self.heard else 0
        await self.session.send_message(text, **options)
        await self.heard.until_shown("agent_end", before + responses)

    async def until_queued(self, ms):
        """Wait until so much audio waits for the consumer."""
        await until(lambda: self.session._core.events.audio_ms >= ms)

    def sent(self, *kinds, since=0):
        """The types of what was sent to the server, without audio."""
        return [
            one["type"]
            for one in self.server.sent()[since:]
            if one["type"] != "input_audio_buffer.append" and (not kinds or one["type"] in kinds)
        ]

    def outputs(self):
        """The outputs of calls that the server was sent, by the id of the call."""
        return [
            (one["item"]["call_id"], one["item"]["output"])
            for one in self.server.sent("conversation.item.create")
            if one["item"]["type"] == "function_call_output"
        ]

    def texts(self, role=None):
        """What the session says was said."""
        found = []
        for item in self.session.history:
            if item.type == "message" and role in (None, item.role):
                found.append(
                    " ".join(
                        getattr(part, "transcript", None) or getattr(part, "text", None) or ""
                        for part in item.content
                    )
                )
        return found


@asynccontextmanager
async def desk(
    agent,
    *replies,
    config=None,
    faults=None,
    clock=None,
    earned=(),
    consume=True,
    otherwise=None,
    model_config=None,
    **options,
):
    """A session of the agent with a server that gives these replies.

    Whatever the client has earned but `earned` fails the test.
    """
    runner_options = {name: options.pop(name) for name in ("store", "hooks") if name in options}
    async with (
        LocalRealtimeServer(list(replies), faults=faults, otherwise=otherwise) as server,
        ActorSystem(clock=clock) as system,
    ):
        model = OpenAIRealtimeModel(base_url=server.base_url, api_key="secret-key")
        runner = RealtimeRunner(agent, model=model, config=config, system=system, **runner_options)
        async with runner.run(model_config=model_config, **options) as session:
            heard = Heard(session) if consume else None
            made = Desk(server, session, heard, system)
            made.runner = runner
            yield made
        if heard is not None:
            await heard.task
        assert [code for code, _ in server.errors] == list(earned), server.errors
