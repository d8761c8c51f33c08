"""Sessions of the Agents SDK in a store of understudy's, and in the SDK's own file."""

import asyncio

import pytest

from understudy.actors import agents_sdk as sdk
from understudy.actors.agents_sdk.testing import ScriptedModel, assistant_message
from understudy.runtime import MemoryStore


@pytest.mark.parametrize("make", [lambda: sdk.StoreSession(MemoryStore(), "s"), lambda: sdk.SQLiteSession("s")], ids=["store", "sqlite"])
def test_a_session_carries_a_conversation_from_run_to_run(make):
    async def story():
        session, model = make(), ScriptedModel([[assistant_message("Hello Ann.")], [assistant_message("You are Ann.")]])
        agent = sdk.Agent(name="A", model=model)
        await sdk.Runner.run(agent, "I am Ann.", session=session)
        await sdk.Runner.run(agent, "Who am I?", session=session)
        kept = await session.get_items()
        assert [item.get("content") for item in model.last_call.input][::2] == ["I am Ann.", "Who am I?"]
        assert len(kept) == 4
        assert await session.get_items(limit=1) == kept[-1:]
        assert await session.pop_item() == kept[-1]
        await session.clear_session()
        assert (await session.get_items(), await session.pop_item()) == ([], None)
        if isinstance(session, sdk.SQLiteSession):
            session.close()

    asyncio.run(story())


def test_two_sessions_of_a_store_are_apart():
    async def story():
        store = MemoryStore()
        one, other = sdk.StoreSession(store, "1"), sdk.StoreSession(store, "2")
        await one.add_items([{"role": "user", "content": "x"}])
        assert await other.get_items() == []
        assert await sdk.StoreSession(store, "1").get_items() == [{"role": "user", "content": "x"}]

    asyncio.run(story())
