"""Conversations that are spoken, drawn at random, with faults of the network, and what has to hold
of all of them.
"""

import asyncio
import random

from offbook.actors import tool
from offbook.actors.realtime import RealtimeAgent, Reconnect
from offbook.actors.realtime.local import Call, Fault, Reply, Say, silence, speech
from offbook.runtime import Backoff
from tests.doubles.realtime import desk

# What a client may earn that knows of a response a moment later than the server does.
RACES = ("conversation_already_has_active_response", "response_cancel_not_active")
QUICK = {"reconnect": Reconnect(attempts=9, backoff=Backoff(initial=0.001, maximum=0.002))}
QUIET = 300  # turns of the loop in which nothing happens


class Talk:
    """One conversation: everything that is drawn comes from its seed."""

    def __init__(self, seed):
        self.dice = random.Random(seed)
        self.ran = []
        self.replies = 0
        dice = self.dice

        @tool
        async def work(key: str) -> str:
            """Work."""
            self.ran.append(key)
            for _ in range(dice.randrange(40)):
                await asyncio.sleep(0)
            return f"done {key}"

        other = RealtimeAgent("b", "B", tools=[work])
        self.agent = RealtimeAgent("a", "A", tools=[work], handoffs=[other])
        other.handoffs = [self.agent]
        kinds = ["reset", 1011, 1001]
        self.faults = [
            Fault(
                dice.choice(kinds),
                None,
                dice.choice(["client", "server"]),
                nth=dice.randrange(8, 60),
                after=dice.random() < 0.5,
            )
            for _ in range(dice.randrange(3))
        ]

    def answer(self, session, options):
        """What the model says next."""
        self.replies += 1
        number, dice = self.replies, self.dice
        last = session.items[-1]["type"] if session.items else None
        if last == "function_call_output" or options.get("tool_choice") == "none":
            return Reply(Say(f"after call {number}", ms=dice.choice([100, 600])))
        drawn = dice.random()
        if drawn < 0.3:
            return Reply(Say(f"say {number} and so on", ms=dice.choice([100, 1_000])))
        if drawn < 0.6:
            return Reply(
                *(
                    Call("work", f'{{"key": "k{number}.{index}"}}', f"c{number}_{index}")
                    for index in range(dice.randrange(1, 4))
                )
            )
        if drawn < 0.75:
            target = "b" if session.settings.get("instructions") == "A" else "a"
            return Reply(Call(f"transfer_to_{target}", "{}", f"h{number}"))
        return Reply(Say("both", ms=300), Call("work", f'{{"key": "m{number}"}}', f"m{number}"))

    async def play(self):
        """Talk, and check."""
        dice = self.dice
        async with desk(self.agent, otherwise=self.answer, faults=self.faults, config=QUICK) as at:
            for step in range(dice.randrange(3, 8)):
                drawn = dice.random()
                if drawn < 0.5:
                    await at.session.send_message(f"m{step}")
                elif drawn < 0.8:
                    await at.session.send_audio(speech(f"s{step}"))
                    if dice.random() < 0.9:
                        await at.session.send_audio(silence())
                else:
                    await at.session.interrupt()
                for _ in range(dice.randrange(200)):
                    await asyncio.sleep(0)
            await at.session.send_audio(silence())
            await self._until_quiet(at)
            self._check(at)
            at.server.errors[:] = [one for one in at.server.errors if one[0] not in RACES]

    async def _until_quiet(self, at):
        core, quiet = at.session._core, 0
        while quiet < QUIET:
            await asyncio.sleep(0)
            assert not core.is_closing, core.end_error
            there = at.server.session
            is_quiet = (
                core.lifecycle.is_pause()
                and there.active is None
                and there.heard is None
                and not core.outbox._control
                and not core.outbox._audio
            )
            quiet = quiet + 1 if is_quiet else 0

    def _check(self, at):
        items, events = at.server.session.items, at.heard.events
        assert len({one["id"] for one in items}) == len(items)
        calls = {one["call_id"]: one for one in items if one["type"] == "function_call"}
        outputs = [one["call_id"] for one in items if one["type"] == "function_call_output"]
        assert len(set(outputs)) == len(outputs)
        assert set(outputs) <= set(calls)
        assert all(calls[one].get("status") == "incomplete" for one in calls.keys() - set(outputs))
        assert len(self.ran) == len(set(self.ran))
        over = set()
        for index, event in enumerate(events):
            if event.type == "audio_interrupted":
                over |= {
                    one.audio.response_id
                    for one in events[:index]
                    if one.type == "audio" and one.item_id == event.item_id
                }
            assert event.type != "audio" or event.audio.response_id not in over
        there = [
            one["content"][0].get("text") or one["content"][0].get("transcript")
            for one in items
            if one["type"] == "message" and one["role"] == "user"
        ]
        assert [one for one in at.texts("user") if one] == [one for one in there if one]
        assert at.server.session.settings["instructions"] == at.session.current_agent.instructions
        shown = [event.code for event in at.heard.of("error")]
        assert not set(shown) & set(RACES)
