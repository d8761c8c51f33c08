"""A model that is held up for as long as a test wants."""

import asyncio

from offbook.runtime import ScriptedModel


class Gated:
    """A model that answers when its gate is opened."""

    def __init__(self):
        self.asked, self.gate = asyncio.Event(), asyncio.Event()

    async def generate(self, request):
        self.asked.set()
        await self.gate.wait()
        return await ScriptedModel(["at last"]).generate(request)
