"""A store with `get` and `set` alone: what it keeps, and what the log says that it does not."""

import pytest

from offbook.runtime.a2a import a2a_app
from tests.doubles.a2a import ByHand, scripted, serving, state_of, text_of


class Dictionary:
    """The least that a store can be, `def` or `async def`."""

    def __init__(self):
        self.kept = {}

    def get(self, key):
        return self.kept.get(key)

    def set(self, key, value):
        self.kept[key] = value


class Slow(Dictionary):
    async def get(self, key):
        return self.kept.get(key)

    async def set(self, key, value):
        self.kept[key] = value


async def asks(input, context):
    if context.resume is not None and context.resume.was_interrupted:
        yield f"answered {context.resume.data}"
    elif input.messages[-1].text == "ask":
        yield context.interrupt("?")
    else:
        yield "said"


@pytest.mark.parametrize("make", [Dictionary, Slow])
def test_tasks_outlive_the_process_and_a_warning_says_what_does_not(run, caplog, make):
    store = make()

    async def main():
        async with serving(a2a_app(scripted(asks), store=store)) as url, ByHand(url) as client:
            said, asked = await client.send("say"), await client.send("ask")
            assert (await client.call("ListTasks", {}))["result"]["totalSize"] == 2
        async with serving(a2a_app(scripted(asks), store=store)) as url, ByHand(url) as client:
            assert text_of(await client.get(said["id"])) == "said"
            assert state_of(await client.get(asked["id"])) == "INPUT_REQUIRED"
            done = await client.send("yes", taskId=asked["id"])
            assert (state_of(done), text_of(done)) == ("COMPLETED", "answered yes")
            assert (await client.get("none"))["error"]["code"] == -32001

    run(main())
    warnings = [record.getMessage() for record in caplog.records if record.name == "offbook.a2a"]
    assert len(warnings) == 2
    assert "they are not listed" in warnings[0]
