"""`offbook.agents_sdk.Runner`: runs of the SDK that a store has."""

import asyncio

import agents
import pytest
from agents import (
    Agent,
    GuardrailFunctionOutput,
    RunConfig,
    RunHooks,
    SQLiteSession,
    function_tool,
    input_guardrail,
)
from agents.testing import ModelStep, ScriptedModel, assistant_message, function_call
from pydantic import BaseModel

import offbook
from offbook import MemoryStore
from offbook.agents_sdk import (
    OffbookRunner,
    Runner,
    SdkAgent,
    StoreSession,
    as_sdk_agent,
    idempotency_key,
    install,
)
from tests.doubles.snapshots import Snapshots


class Trip(BaseModel):
    to: str
    euros: float


def scripted(*replies):
    """A model that replies with texts and with calls."""
    outputs = [
        [assistant_message(reply)]
        if isinstance(reply, str)
        else reply
        if isinstance(reply, list)
        else [reply]
        for reply in replies
    ]
    return ScriptedModel([ModelStep(output=output) for output in outputs])


def weather(made=None):
    @function_tool
    async def get_weather(city: str) -> str:
        """Get the weather."""
        if made is not None:
            made.append(idempotency_key())
        return f"sunny in {city}"

    return get_weather


def asks_the_weather(made=None, *, answer="It is sunny."):
    call = function_call("get_weather", {"city": "Rome"}, call_id="c1")
    return Agent(
        name="A", instructions="Be brief.", tools=[weather(made)], model=scripted(call, answer)
    )


def stored(agent, store, **options):
    return offbook.Runner(SdkAgent(agent, **options), store=store, durability="step")


def test_a_run_with_a_store_has_the_sdks_result_and_is_listed_with_its_messages(run):
    async def main():
        store, made, agent = MemoryStore(), [], asks_the_weather()
        agent.tools = [weather(made)]
        result = await Runner.run(
            agent, "How is it in Rome?", store=store, run_id="r", labels={"tenant": "acme"}
        )
        assert type(result) is agents.RunResult
        assert (result.final_output, result.last_agent) == ("It is sunny.", agent)
        assert len(made) == 1
        assert made[0].startswith("r/A#0/0:")
        (info,) = await stored(agent, store).runs(labels={"tenant": "acme"})
        assert (info.id, info.status, info.agent) == ("r", "completed", "A")
        events = (await stored(agent, store).attach("r")).events
        assert [event.message.role for event in events] == ["assistant", "tool", "assistant"]

    run(main())


def test_a_run_that_was_named_is_begun_once_and_gives_its_result_again(run):
    async def main():
        store = MemoryStore()
        first = await Runner.run(asks_the_weather(), "q", store=store, run_id="r")
        again = await Runner.run(
            asks_the_weather(answer="never asked"), "q", store=store, run_id="r"
        )
        assert again.final_output == first.final_output == "It is sunny."
        assert [item.type for item in again.new_items] == [item.type for item in first.new_items]
        assert again.to_input_list() == first.to_input_list()
        with pytest.raises(offbook.UsageError, match="other messages"):
            await Runner.run(asks_the_weather(), "another question", store=store, run_id="r")

    run(main())


def test_a_typed_output_comes_back_as_its_type(run):
    async def main():
        store = MemoryStore()

        def agent():
            return Agent(
                name="A", output_type=Trip, model=scripted('{"to": "Oslo", "euros": 12.5}')
            )

        first = await Runner.run(agent(), "q", store=store, run_id="r")
        again = await Runner.run(agent(), "q", store=store, run_id="r")
        assert first.final_output == again.final_output == Trip(to="Oslo", euros=12.5)

    run(main())


def test_a_failed_run_that_is_asked_for_again_raises_the_sdks_exception(run):
    async def main():
        store, call = MemoryStore(), function_call("get_weather", {"city": "Rome"}, call_id="c1")
        agent = Agent(name="A", tools=[weather()], model=scripted(call, call))
        for _ in range(2):
            with pytest.raises(agents.MaxTurnsExceeded, match="Max turns"):
                await Runner.run(agent, "q", store=store, run_id="r", max_turns=1)

    run(main())


class Abort(BaseException):
    """No `Exception`: the actor crashes on it."""


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("error", [LookupError, Abort])
@pytest.mark.parametrize("switch", ["DONT_LOG_MODEL_DATA", "DONT_LOG_TOOL_DATA", None])
def test_the_log_has_no_data_of_a_failed_run_that_the_sdk_is_not_to_log(
    run, caplog, monkeypatch, switch, error, streamed
):
    for name in ("DONT_LOG_MODEL_DATA", "DONT_LOG_TOOL_DATA"):
        monkeypatch.setattr(f"agents._debug.{name}", name == switch)
    caplog.set_level("DEBUG", logger="offbook")

    class Failing(ScriptedModel):
        async def get_response(self, *args, **kwargs):
            raise error("card 4711")

        async def stream_response(self, *args, **kwargs):
            raise error("card 4711")
            yield

    async def main():
        store, agent = MemoryStore(), Agent(name="A", model=Failing())
        with pytest.raises(error, match="card 4711"):
            if not streamed:
                await Runner.run(agent, "q", store=store, run_id="r")
            async for _ in Runner.run_streamed(agent, "q", store=store, run_id="s").stream_events():
                pass

    run(main())
    records = [record for record in caplog.records if record.levelname == "ERROR"]
    assert error.__name__ in records[0].getMessage()
    is_logged = any("4711" in caplog.handler.format(record) for record in caplog.records)
    assert is_logged == (switch is None)
    assert any(record.exc_info for record in caplog.records) == (switch is None)
    assert ("OPENAI_AGENTS_DONT_LOG_TOOL_DATA=0" in caplog.text) == (switch is not None)


def test_a_stream_has_the_sdks_events_and_the_run_is_stored_when_it_ends(run):
    async def main():
        store, agent = MemoryStore(), asks_the_weather()
        result = Runner.run_streamed(agent, "q", store=store, run_id="r")
        kinds = [event.type async for event in result.stream_events()]
        assert {"raw_response_event", "run_item_stream_event", "agent_updated_stream_event"} == set(
            kinds
        )
        assert result.final_output == "It is sunny."
        assert (await stored(agent, store).info("r")).status == "completed"

    run(main())


def test_a_stream_of_a_run_that_has_ended_says_so(run):
    async def main():
        store = MemoryStore()
        await Runner.run(asks_the_weather(), "q", store=store, run_id="r")
        result = Runner.run_streamed(asks_the_weather(), "q", store=store, run_id="r")
        with pytest.raises(offbook.UsageError, match=r"run r is completed already.*Runner\.run"):
            async for _ in result.stream_events():
                pass

    run(main())


def test_a_stream_that_is_cancelled_cancels_the_stored_run(run):
    async def main():
        store, reached, never = MemoryStore(), asyncio.Event(), asyncio.Event()

        @function_tool
        async def wait() -> str:
            reached.set()
            await never.wait()
            return ""

        agent = Agent(
            name="A", tools=[wait], model=scripted(function_call("wait", {}, call_id="c"))
        )
        result = Runner.run_streamed(agent, "q", store=store, run_id="r")
        consumer = asyncio.ensure_future(drain(result))
        await reached.wait()
        result.cancel()
        await asyncio.wait([consumer])
        runner = stored(agent, store)
        assert (await runner.info("r")).status == "cancelled"
        assert await runner.recover() == []

    async def drain(result):
        async for _ in result.stream_events():
            pass

    run(main())


def test_run_sync_stores_the_run():
    store = MemoryStore()
    assert (
        Runner.run_sync(asks_the_weather(), "q", store=store, run_id="r").final_output
        == "It is sunny."
    )
    loop = asyncio.get_event_loop_policy().get_event_loop()
    assert loop.run_until_complete(store.run_entry("r")) is not None
    loop.close()
    asyncio.set_event_loop(None)


def test_without_a_store_it_is_the_sdks_own_runner(run):
    async def main():
        result = await Runner.run(asks_the_weather(made := []), "q")
        assert result.final_output == "It is sunny."
        assert made == [None]
        with pytest.raises(offbook.UsageError, match=r"run_id= and labels= name a stored run"):
            await Runner.run(asks_the_weather(), "q", run_id="r")

    run(main())


def test_an_option_that_is_misspelt_is_not_passed_over():
    """The SDK ignores what it does not know: a run without its store would not be noticed."""
    with pytest.raises(TypeError, match=r"unexpected keyword argument 'sotre'.*store"):
        Runner.run_sync(asks_the_weather(), "q", sotre=MemoryStore())


def test_install_makes_every_run_of_the_sdk_a_stored_run(run):
    async def main():
        store, agent = MemoryStore(), asks_the_weather()
        with install(store=store):
            await agents.Runner.run(agent, "q")
        assert type(agents.run.get_default_agent_runner()) is agents.run.AgentRunner
        assert len(await stored(agent, store).runs()) == 1

    run(main())


def test_runs_inside_of_tools_and_agents_as_tools_belong_to_the_stored_run(run):
    """Whatever was recorded when the process ended, the answer is the same, and no model call that
    was recorded is made again.
    """

    async def main():
        asked = []

        def agent():
            poet = Agent(name="poet", model=Replying("poet", ["a poem"], asked))
            critic = Agent(name="critic", model=Replying("critic", ["good"], asked))

            @function_tool
            async def judge(poem: str) -> str:
                """Judge a poem."""
                return str((await agents.Runner.run(critic, poem)).final_output)

            calls = [
                function_call("write", {"input": "autumn"}, call_id="c1"),
                function_call("judge", {"poem": "a poem"}, call_id="c2"),
            ]
            return Agent(
                name="A",
                tools=[poet.as_tool("write", "Write."), judge],
                model=Replying("A", [*calls, "The poem is good."], asked),
            )

        store = Snapshots()
        await Runner.run(agent(), "q", store=store, run_id="r")
        assert asked == ["A 0", "poet 0", "A 1", "critic 0", "A 2"]
        whole, recovered = list(asked), 0
        for _call, content in store.taken:
            asked.clear()
            for again in await stored(agent(), Snapshots(content)).recover():
                result = await again
                assert result.text == "The poem is good."
                assert asked == whole[len(whole) - len(asked) :]
                recovered += 1
        assert recovered > 5

    run(main())


class Replying(agents.Model):
    """Replies by how many results it is shown; notes that it was asked."""

    def __init__(self, name, replies, asked):
        self._name, self._replies, self._asked = name, replies, asked

    async def get_response(self, system_instructions, input, *_, **__):
        index = (
            0
            if isinstance(input, str)
            else sum(item.get("type") == "function_call_output" for item in input)
        )
        self._asked.append(f"{self._name} {index}")
        reply = self._replies[index]
        return agents.ModelResponse(
            output=[assistant_message(reply) if isinstance(reply, str) else reply],
            usage=agents.Usage(requests=1),
            response_id=None,
        )

    def stream_response(self, *_, **__):
        raise AssertionError("it is not streamed")


def test_a_definition_that_has_changed_is_an_error_that_names_the_step_and_loses_nothing(run):
    async def main():
        store = Snapshots()
        await Runner.run(asks_the_weather(), "q", store=store, run_id="r")
        content = next(
            content
            for call, content in store.taken
            if b"sunny in Rome" in b"".join(b"".join(records) for _, records in content.values())
        )
        changed = asks_the_weather()
        changed.instructions = "Be verbose."
        lost = Snapshots(content)
        (recovered,) = await stored(changed, lost).recover()
        result = await recovered
        assert result.status == "interrupted"
        (waiting,) = result.interrupts
        assert waiting.info["step"] == "A#0"
        assert "asks for something else than was recorded" in waiting.info["error"]
        made = []
        result = await stored(asks_the_weather(made), lost).resume("r")
        assert (result.status, result.text, made) == ("completed", "It is sunny.", []), (
            "with the definition as it was, it goes on from its record"
        )

        lost = Snapshots(content)
        (recovered,) = await stored(changed, lost).recover()
        await recovered
        changed.model = asks_the_weather().model
        result = await stored(changed, lost).resume("r", data="rerun_from_here")
        assert (result.status, result.text) == ("completed", "It is sunny.")

    run(main())


def test_on_change_rerun_makes_the_step_and_all_that_follow_again(run, caplog):
    async def main():
        store = Snapshots()
        await Runner.run(asks_the_weather(), "q", store=store, run_id="r")
        content = next(
            content
            for call, content in store.taken
            if b"sunny in Rome" in b"".join(b"".join(records) for _, records in content.values())
        )
        changed = asks_the_weather(made := [], answer="It is hot.")
        changed.instructions = "Be verbose."
        (recovered,) = await stored(
            changed, Snapshots(content), on_change="rerun_from_here"
        ).recover()
        assert ((await recovered).text, len(made)) == ("It is hot.", 1)
        assert "asks for something else at step 'A#0'" in caplog.text

    run(main())


def test_hooks_run_again_on_a_replay_unless_they_are_to_run_once(run):
    class Noting(RunHooks):
        def __init__(self):
            self.seen = []

        async def on_tool_end(self, context, agent, tool, result):
            self.seen.append(result)

    async def main():
        store = Snapshots()
        await Runner.run(asks_the_weather(), "q", store=store, run_id="r")
        content = next(
            content
            for call, content in store.taken
            if b"sunny in Rome" in b"".join(b"".join(records) for _, records in content.values())
        )
        for once, seen in ((False, ["sunny in Rome"]), (True, [])):
            hooks = Noting()
            agent = asks_the_weather()
            (recovered,) = await stored(
                agent, Snapshots(content), run_hooks=hooks, once=once
            ).recover()
            await recovered
            assert hooks.seen == seen

    run(main())


def test_a_tool_that_raises_is_not_called_again_after_a_crash(run):
    async def main():
        called = []

        def agent():
            @function_tool
            async def pay() -> str:
                called.append("paid")
                raise ValueError("the receipt cannot be printed")

            return Agent(
                name="A",
                tools=[pay],
                model=scripted(function_call("pay", {}, call_id="c"), "It went wrong."),
            )

        store = Snapshots()
        await Runner.run(agent(), "q", store=store, run_id="r")
        content = next(
            content
            for call, content in store.taken
            if b"A#0/c\x82" in b"".join(b"".join(records) for _, records in content.values())
        )
        (recovered,) = await stored(agent(), Snapshots(content)).recover()
        assert (await recovered).text == "It went wrong."
        assert called == ["paid"]

    run(main())


def test_a_context_is_made_anew_when_a_run_is_recovered(run):
    async def main():
        @function_tool
        async def who(context: agents.RunContextWrapper[dict]) -> str:
            return context.context["who"]

        def agent():
            return Agent(
                name="A", tools=[who], model=scripted(function_call("who", {}, call_id="c"), "done")
            )

        store = Snapshots()
        await Runner.run(agent(), "q", store=store, run_id="r", context={"who": "Ann"})
        content = next(content for call, content in store.taken if call.changes)
        (recovered,) = await stored(
            agent(), Snapshots(content), context_factory=lambda: {"who": "Bob"}
        ).recover()
        events = [event async for event in recovered]
        assert [event.text for event in events if event.message.role == "tool"] == ["Bob"]

    run(main())


def test_a_session_of_the_sdk_has_each_item_once(run, tmp_path):
    async def main():
        session = SQLiteSession("s", tmp_path / "sessions.db")
        store = MemoryStore()
        await Runner.run(asks_the_weather(), "q", store=store, run_id="r", session=session)
        items = await session.get_items()
        assert [item.get("role") or item.get("type") for item in items] == [
            "user",
            "function_call",
            "function_call_output",
            "assistant",
        ]
        await Runner.run(asks_the_weather(answer="And now?"), "again", store=store, session=session)
        assert len(await session.get_items()) == 8
        session.close()

    run(main())


class Receipt:
    """What a database driver returns for a write: an object that leads back to itself."""

    def __init__(self):
        self.cursor = self


class ReceiptSession(StoreSession):
    async def add_items(self, items):
        await super().add_items(items)
        return Receipt()


def test_what_a_session_returns_for_a_write_is_not_stored(run):
    async def main():
        store = MemoryStore()
        session = ReceiptSession(store, "s")
        result = await Runner.run(asks_the_weather(), "q", store=store, run_id="r", session=session)
        assert result.final_output == "It is sunny."
        assert len(await session.get_items()) == 4

    run(main())


class SettlingSession(StoreSession):
    """Ends a write that it has begun, however often its caller is cancelled."""

    def __init__(self, store):
        super().__init__(store, "s")
        self.begun, self.may_end = asyncio.Event(), asyncio.Event()

    async def add_items(self, items):
        write = asyncio.ensure_future(self._write_slowly(items))
        while not write.done():
            try:
                await asyncio.shield(write)
            except asyncio.CancelledError:
                self.begun.set()

    async def _write_slowly(self, items):
        self.begun.set()
        await self.may_end.wait()
        await super().add_items(items)


def test_a_caller_that_is_cancelled_twice_waits_for_what_the_session_has_begun(run):
    async def main():
        store = MemoryStore()
        session = SettlingSession(store)
        caller = asyncio.ensure_future(
            Runner.run(asks_the_weather(), "q", store=store, run_id="r", session=session)
        )
        for _ in range(3):  # once it has begun, and after each cancellation
            await asyncio.wait_for(session.begun.wait(), 10)
            session.begun.clear()
            assert not caller.done()
            caller.cancel()
        session.may_end.set()
        with pytest.raises(asyncio.CancelledError):
            await caller
        assert len(await session.get_items()) == 1
        runner = stored(asks_the_weather(), store, session_factory=lambda _: session)
        (recovered,) = await runner.recover()
        assert (await recovered).text == "It is sunny."
        assert len(await session.get_items()) == 4

    run(main())


def test_a_run_with_a_session_that_nobody_can_open_says_what_to_pass(run):
    async def main():
        store = Snapshots()
        await Runner.run(
            asks_the_weather(),
            "q",
            store=store,
            run_id="r",
            session=StoreSession(MemoryStore(), "s"),
        )
        _call, content = next(taken for taken in store.taken if taken[0].changes)
        (recovered,) = await stored(asks_the_weather(), Snapshots(content)).recover()
        result = await recovered
        assert "session_factory=" in str(result.error)

    run(main())


class LazySession(StoreSession):
    """A session that the provider names when it is first used, as `OpenAIConversationsSession`."""

    session_id = property(lambda self: self._named())

    def __init__(self, store):
        self.name, self.items = "", store

    def _named(self):
        if not self.name:
            raise ValueError("Session ID not yet available.")
        return self.name

    async def get_items(self, limit=None):
        self.name = self.name or "conversation-1"
        return await StoreSession(self.items, self.name).get_items(limit)

    async def add_items(self, items):
        self.name = self.name or "conversation-1"
        await StoreSession(self.items, self.name).add_items(items)


def test_a_session_that_is_named_when_it_is_first_used_is_opened_again_by_that_name(run):
    async def main():
        store, items = Snapshots(), MemoryStore()
        await Runner.run(
            asks_the_weather(), "q", store=store, run_id="r", session=LazySession(items)
        )
        opened = []

        def session_factory(session_id):
            opened.append(session_id)
            return StoreSession(MemoryStore(), session_id)

        for _call, content in store.taken:
            for recovered in await stored(
                asks_the_weather(), Snapshots(content), session_factory=session_factory
            ).recover():
                await recovered
        assert opened[0] == "", "nothing was in the session then"
        assert opened[-1] == "conversation-1"

    run(main())


def test_a_guardrail_that_runs_an_agent_is_part_of_the_run(run):
    async def main():
        asked = []

        def agent():
            checker = Agent(name="checker", model=Replying("checker", ["fine"], asked))

            @input_guardrail
            async def check(context, agent, input):
                result = await Runner.run(checker, input)
                return GuardrailFunctionOutput(
                    output_info=result.final_output, tripwire_triggered=False
                )

            return Agent(name="A", input_guardrails=[check], model=Replying("A", ["done"], asked))

        store = Snapshots()
        result = await Runner.run(agent(), "q", store=store, run_id="r")
        assert result.input_guardrail_results[0].output.output_info == "fine"
        content = store.taken[-2][1]
        asked.clear()
        for recovered in await stored(agent(), Snapshots(content)).recover():
            assert (await recovered).text == "done"
        assert "checker 0" not in asked

    run(main())


def test_an_agent_of_the_sdk_is_a_step_of_a_workflow_and_a_native_one_is_its_target(run):
    async def main():
        native = offbook.ChatModelAgent(
            name="Native",
            description="Knows all.",
            model=offbook.ScriptedModel(["I know it all.", "Again."]),
        )
        desk = Agent(
            name="desk",
            model=scripted(function_call("transfer_to_native", {}, call_id="c")),
            handoffs=[as_sdk_agent(native)],
        )
        team = offbook.Sequential(
            name="Team",
            sub_agents=[
                SdkAgent(desk),
                offbook.ChatModelAgent(name="Last", model=offbook.ScriptedModel(["The end."])),
            ],
        )
        result = await offbook.Runner(team, store=MemoryStore(), durability="step").query("q")
        assert [
            event.text
            for event in result.events
            if event.message.role == "assistant" and event.text
        ] == ["I know it all.", "The end."]
        as_tool = Agent(
            name="B",
            model=scripted(function_call("know", {"input": "x"}, call_id="c"), "done"),
            tools=[as_sdk_agent(native).as_tool("know", "Know.")],
        )
        result = await Runner.run(as_tool, "q", store=MemoryStore())
        assert result.new_items[1].output == "Again."

    run(main())


def test_deltas_are_shown_by_the_stored_run(run):
    async def main():
        agent = Agent(name="A", model=scripted("It is sunny in Rome."))
        events = [
            event
            async for event in offbook.Runner(
                SdkAgent(agent), store=MemoryStore(), durability="step", streaming=True
            ).query("q")
        ]
        assert (
            "".join(event.delta.content for event in events if event.delta)
            == "It is sunny in Rome."
        )
        assert events[-1].message.text == "It is sunny in Rome."

    run(main())


def test_tracing_and_variables_of_the_caller_are_there(run):
    async def main():
        with agents.trace("mine", disabled=True) as trace:
            seen = []

            @function_tool
            async def look() -> str:
                seen.append(agents.get_current_trace())
                return ""

            agent = Agent(
                name="A",
                tools=[look],
                model=scripted(function_call("look", {}, call_id="c"), "done"),
            )
            await Runner.run(
                agent, "q", store=MemoryStore(), run_config=RunConfig(workflow_name="w")
            )
            assert seen == [trace]

    run(main())


def test_the_runner_needs_a_store_that_can_fence(run):
    class Plain:
        async def get(self, key):
            return None

        async def set(self, key, value):
            pass

        async def delete(self, key):
            pass

    async def main():
        with pytest.raises(offbook.UsageError, match="JournalStore"):
            await OffbookRunner(store=Plain()).run(asks_the_weather(), "q", max_turns=3)
        with pytest.raises(offbook.UsageError, match=r"SdkAgent\(agent\) must be an agents\.Agent"):
            SdkAgent(offbook.ChatModelAgent(name="A", model=offbook.ScriptedModel([])))
        with pytest.raises(offbook.UsageError, match="on_change must be"):
            SdkAgent(asks_the_weather(), on_change="ignore")

    run(main())


@pytest.mark.parametrize("streamed", [False, True])
def test_each_call_has_a_key_of_its_own_that_no_id_of_a_provider_is_part_of(run, streamed):
    async def keys_of(ids):
        made = []
        rome, oslo = (
            lambda city=city: function_call("get_weather", {"city": city}, call_id=next(ids))
            for city in ("Rome", "Oslo")
        )
        inner = Agent(
            name="inner", tools=[weather(made)], model=scripted([rome(), rome()], "inner done")
        )
        nested = function_call("ask", {"input": "q"}, call_id=next(ids))
        outer = Agent(
            name="A",
            tools=[weather(made), inner.as_tool(tool_name="ask", tool_description="Ask.")],
            model=scripted([rome(), rome(), oslo()], rome(), nested, "done"),
        )
        if streamed:
            result = Runner.run_streamed(outer, "q", store=MemoryStore(), run_id="r")
            async for _ in result.stream_events():
                pass
        else:
            await Runner.run(outer, "q", store=MemoryStore(), run_id="r")
        return made

    async def main():
        first = await keys_of(iter(f"first-{number}" for number in range(9)))
        again = await keys_of(iter(f"again-{number}" for number in range(9)))
        assert len(set(first)) == len(first) == 6
        assert first == again
        assert all(key.startswith("r/") and "first" not in key for key in first)

    run(main())
