"""`StoreSession`: a conversation of the SDK in a store of offbook's."""

import pytest
from agents import Agent, SessionSettings
from agents.testing import ModelStep, ScriptedModel, assistant_message

from offbook import MemoryStore
from offbook.agents_sdk import Runner, StoreSession


@pytest.mark.parametrize("kind", ["memory", "sqlite", "redis", "postgres"])
def test_a_session_carries_a_conversation_from_run_to_run(run, store_of, kind):
    async def main():
        store = store_of(kind)
        session = StoreSession(store, "s")
        model = ScriptedModel(
            [ModelStep(output=[assistant_message(text)]) for text in ("Hello Ann.", "You are Ann.")]
        )
        agent = Agent(name="A", model=model)
        await Runner.run(agent, "I am Ann.", session=session, store=store)
        await Runner.run(agent, "Who am I?", session=session, store=store)
        items = await session.get_items()
        assert [item.get("content") for item in model.last_call.input][::2] == [
            "I am Ann.",
            "Who am I?",
        ]
        assert len(items) == 4
        assert await session.get_items(limit=1) == items[-1:]
        assert (
            await StoreSession(store, "s", session_settings=SessionSettings(limit=2)).get_items()
            == items[-2:]
        )
        assert await session.pop_item() == items[-1]
        await session.clear_session()
        assert (await session.get_items(), await session.pop_item()) == ([], None)

    run(main())


def test_two_sessions_of_a_store_are_apart(run):
    async def main():
        store = MemoryStore()
        one, other = StoreSession(store, "1"), StoreSession(store, "2")
        await one.add_items([{"role": "user", "content": "x"}])
        assert await other.get_items() == []
        assert await StoreSession(store, "1").get_items() == [{"role": "user", "content": "x"}]

    run(main())
