"""Tools that are called while the session goes on."""

import asyncio
import json
from dataclasses import dataclass

import pytest
from pydantic import BaseModel

from offbook.actors import tool
from offbook.actors.realtime import RealtimeAgent, RealtimeModelToolCallEvent
from offbook.actors.realtime.local import Call, Fault, Gate, Reply, Say, silence, speech
from offbook.runtime import AgentError
from offbook.runtime.testing import ManualClock
from tests.doubles.realtime import desk, until


class Work:
    """A tool that goes on when the test says so."""

    def __init__(self, name="work", **options):
        self.began, self.go, self.calls = [], {}, 0

        async def work(key: str) -> str:
            """Work."""
            self.calls += 1
            self.go.setdefault(key, asyncio.Event())
            self.began.append(key)
            await self.go[key].wait()
            return f"done {key}"

        self.tool = tool(name=name, **options)(work)

    async def until_begun(self, count=1):
        await until(lambda: len(self.began) >= count)

    def end(self, key):
        self.go.setdefault(key, asyncio.Event()).set()

    def call(self, key, call_id=None):
        return Call(self.tool.name, json.dumps({"key": key}), call_id or key)


def agent_with(*tools):
    return RealtimeAgent("desk", "Answer.", tools=list(tools))


def test_case_23_three_calls_of_one_response_run_at_once_and_are_answered_by_one(run):
    async def main():
        work = Work()
        async with desk(
            agent_with(work.tool),
            Reply(work.call("a"), work.call("b"), work.call("c")),
            Reply(Say("All done.")),
        ) as at:
            await at.session.send_message("go")
            await work.until_begun(3)
            for key in "cab":
                work.end(key)
            await at.heard.until_shown("agent_end", 2)
            assert sorted(at.outputs()) == [("a", "done a"), ("b", "done b"), ("c", "done c")]
            assert len(at.server.sent("response.create")) == 2
            assert [event.call_id for event in at.heard.of("tool_start")] == ["a", "b", "c"]

    run(main())


def test_tools_are_called_one_after_the_other_if_the_config_says_so(run):
    async def main():
        work = Work()
        async with desk(
            agent_with(work.tool),
            Reply(work.call("a"), work.call("b")),
            Reply(Say("Done.")),
            config={"async_tool_calls": False},
        ) as at:
            await at.session.send_message("go")
            await work.until_begun()
            await at.heard.until_shown("agent_end")
            assert work.began == ["a"]
            work.end("a")
            await work.until_begun(2)
            work.end("b")
            await at.heard.until_shown("agent_end", 2)

    run(main())


def test_case_24_a_slow_call_becomes_background_and_a_background_tool_is_never_waited_for(run):
    async def main():
        clock, work, aside = ManualClock(), Work(), Work("aside")
        reply = Reply(work.call("quick"), work.call("slow"), aside.call("aside"))
        async with desk(
            agent_with(work.tool, aside.tool),
            reply,
            otherwise=Reply(Say("Well.")),
            clock=clock,
            config={"background_tools": ["aside"]},
        ) as at:
            await at.session.send_message("go")
            await work.until_begun(2)
            await aside.until_begun()
            work.end("quick")
            await at.heard.until_shown("agent_end")
            await until(lambda: at.outputs() == [("quick", "done quick")])
            assert len(at.server.sent("response.create")) == 1
            clock.advance(10)  # tool_wait
            await at.heard.until_shown("agent_end", 2)
            work.end("slow")
            await at.heard.until_shown("agent_end", 3)
            aside.end("aside")
            await at.heard.until_shown("agent_end", 4)
            assert len(at.server.sent("response.create")) == 4

    run(main())


def test_case_25_a_result_that_comes_during_a_barge_in_is_sent_and_the_tool_is_not_run_again(run):
    async def main():
        work, gate = Work(), Gate()
        async with desk(
            agent_with(work.tool),
            Reply(work.call("a"), Say("Meanwhile", ms=3_000), gate),
            otherwise=Reply(Say("Here it is.")),
        ) as at:
            await at.session.send_message("go")
            await work.until_begun()
            await at.heard.until_shown("audio")
            await at.session.send_audio(speech("wait"))
            await at.heard.until_shown("agent_end")
            work.end("a")
            await until(at.outputs)
            await at.session.send_audio(silence())
            await at.heard.until_shown("agent_end", 2)
            assert at.outputs() == [("a", "done a")]
            assert work.calls == 1
            known = at.server.responses[1][2]
            assert any(item["type"] == "function_call_output" for item in known)

    run(main())


def test_case_26_a_tool_is_cancelled_by_a_barge_in_only_if_the_config_says_so(run):
    async def main():
        for rule, outputs in (
            ("keep", [("a", "done a")]),
            ("cancel", [("a", "cancelled: the user interrupted")]),
            ({"work": "cancel"}, [("a", "cancelled: the user interrupted")]),
        ):
            work = Work()
            async with desk(
                agent_with(work.tool),
                Reply(work.call("a")),
                otherwise=Reply(Say("Yes.")),
                config={"tool_interrupt": rule},
            ) as at:
                await at.session.send_message("go")
                await work.until_begun()
                await at.session.send_audio(speech("stop"))
                await at.server.until(lambda: at.server.session.heard is not None)
                if rule == "keep":
                    work.end("a")
                await until(at.outputs)
                assert at.outputs() == outputs
                assert len(at.heard.of("tool_cancelled")) == (rule != "keep")
                assert len(at.heard.of("tool_end")) == 1

    run(main())


def test_case_27_a_call_that_was_not_complete_when_its_response_was_cancelled_never_runs(run):
    async def main():
        work, gate = Work(), Gate()

        async def hold(peer, message):
            gate.reached.set()
            await gate.event.wait()

        fault = Fault(hold, "response.function_call_arguments.delta", "server")
        async with desk(
            agent_with(work.tool), Reply(work.call("a")), Reply(Say("Yes?")), faults=[fault]
        ) as at:
            await at.session.send_message("go")
            await gate.reached.wait()
            await at.session.send_audio(speech("no"))
            await at.session.send_audio(silence())
            await at.heard.until_shown("agent_end", 2)
            assert (work.calls, at.outputs()) == (0, [])

    run(main())


def test_case_28_the_id_of_a_call_is_its_identity(run):
    async def main():
        @tool
        def add(number: int) -> int:
            """Add."""
            return number + 1

        reply = Reply(Call("add", '{"number": 1}', "c"))
        async with desk(agent_with(add), reply, otherwise=Reply(Say("Two."))) as at:
            await at.ask("go", 2)
            for event in (
                RealtimeModelToolCallEvent("add", "c", '{"number":1}'),
                RealtimeModelToolCallEvent("add", "c", '{"number": 5}'),
                RealtimeModelToolCallEvent("add", "", '{"number": 5}'),
            ):
                await at.session.on_event(event)
            await at.heard.until_shown("error", 2)
            assert [event.code for event in at.heard.of("error")] == [
                "tool_call_id_reused",
                "invalid_tool_call",
            ]
            assert at.outputs() == [("c", "2")]
            assert len(at.heard.of("tool_start")) == 1

    run(main())


def test_case_29_an_output_that_could_not_be_sent_is_sent_once_later(run):
    async def main():
        work = Work()
        async with desk(
            agent_with(work.tool), Reply(work.call("a")), otherwise=Reply(Say("Done."))
        ) as at:
            await at.session.send_message("go")
            await work.until_begun()
            await at.heard.until_shown("agent_end")
            hold = asyncio.Event()
            at.server.handshakes.append(hold)
            at.server.session.peer.abort()
            await at.heard.until(lambda: not at.session._core.link.is_ready)
            work.end("a")
            await at.heard.until_shown("tool_end")
            hold.set()
            await at.heard.until_shown("agent_end", 2)
            assert (work.calls, at.outputs()) == (1, [("a", "done a")])

    run(main())


def test_case_30_an_unknown_tool_is_told_to_the_model_with_those_there_are(run):
    async def main():
        async with desk(
            agent_with(Work().tool), Reply(Call("nothing", call_id="c")), Reply(Say("Sorry."))
        ) as at:
            await at.ask("go", 2)
            ((_, output),) = at.outputs()
            assert "work" in output
            assert "'nothing'" in output

    run(main())


@dataclass
class Point:
    x: int


class Order(BaseModel):
    id: str


@pytest.mark.parametrize(
    ("result", "output"),
    [
        (Point(3), '{"x": 3}'),
        (Order(id="a"), '{"id":"a"}'),
        ([Point(1)], '[{"x": 1}]'),
        ("text", "text"),
        (None, ""),
        ({"ä": 1}, '{"ä": 1}'),
    ],
)
def test_case_31_what_a_tool_returns_is_text_or_json(run, result, output):
    async def main():
        @tool
        def give() -> object:
            """Give."""
            return result

        async with desk(
            agent_with(give), Reply(Call("give", call_id="c")), Reply(Say("Yes."))
        ) as at:
            await at.ask("go", 2)
            assert at.outputs() == [("c", output)]

    run(main())


def test_case_31_a_tool_that_fails_is_told_to_the_model_and_the_session_goes_on(run):
    async def main():
        clock = ManualClock()

        @tool
        def fails() -> str:
            """Fail."""
            raise ValueError("no such\nthing")

        @tool(timeout=2)
        async def hangs() -> str:
            """Hang."""
            await asyncio.get_running_loop().create_future()

        @tool
        def long() -> str:
            """Long."""
            return "x" * 1_000_000

        calls = (
            Call("fails", call_id="f"),
            Call("hangs", call_id="h"),
            Call("long", call_id="l"),
            Call("fails", '{"x": 1}', "a"),
        )
        async with desk(
            agent_with(fails, hangs, long), Reply(*calls), Reply(Say("Well.")), clock=clock
        ) as at:
            await at.session.send_message("go")
            await at.heard.until_shown("tool_start", 4)
            clock.advance(2)
            await at.heard.until_shown("agent_end", 2)
            outputs = dict(at.outputs())
            assert outputs["f"] == "tool fails failed: ValueError: no such thing"
            assert "took longer" in outputs["h"]
            assert len(outputs["l"]) < 66_000
            assert "[cut" in outputs["l"]
            assert "not valid" in outputs["a"]
            assert {event.call_id for event in at.heard.of("error")} == {"f", "h", "a"}

    run(main())


def test_case_31_a_tool_that_fails_ends_the_session_if_the_config_says_so(run):
    async def main():
        @tool
        def fails() -> str:
            """Fail."""
            raise ValueError("no")

        async with desk(
            agent_with(fails), Reply(Call("fails")), config={"on_tool_error": "raise"}
        ) as at:
            await at.session.send_message("go")
            await at.heard.task
            assert isinstance(at.heard.error, AgentError)
            assert isinstance(at.heard.error.__cause__, ValueError)
            with pytest.raises(AgentError):
                await at.session.wait_closed()
            assert at.outputs() == []

    run(main())
