"""What is measured of runs: by OpenTelemetry's instruments, and for Prometheus."""

import asyncio

import pytest
from opentelemetry import metrics
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from offbook.actors import ChatModelAgent, ToolContext, tool
from offbook.runtime import (
    Actor,
    ActorSystem,
    Backoff,
    MemoryStore,
    Message,
    Restart,
    Runner,
    ScriptedModel,
    ToolCalls,
    Usage,
    UsageError,
    prometheus_app,
)
from offbook.runtime.run import watched_system
from tests.doubles.agents import PlannedAgent


def chat(name, *script, **options):
    return ChatModelAgent(name=name, description=name, model=ScriptedModel(list(script)), **options)


@tool
def look_up() -> str:
    """Look it up."""
    return "found"


@tool
def fail() -> str:
    """Fail."""
    raise ValueError("no")


@tool
def ask(context: ToolContext) -> str:
    """Ask."""
    return context.interrupt("sure?")


@pytest.fixture
def measured(monkeypatch):
    """All points, as name, labels and value: the count of a histogram."""
    reader = InMemoryMetricReader()
    provider = MeterProvider([reader])
    monkeypatch.setattr(metrics._internal, "_METER_PROVIDER", provider)

    def read():
        found = {}
        data = reader.get_metrics_data()
        for metric in (
            metric
            for resource in data.resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
        ):
            for point in metric.data.data_points:
                found[metric.name, frozenset(point.attributes.items())] = (
                    point.count if hasattr(point, "count") else point.value
                )
        return found

    yield read
    provider.shutdown()


def total(found, name, **labels):
    """The sum of the points of that name that have those labels."""
    wanted = {(key.replace("__", "."), value) for key, value in labels.items()}
    return sum(value for (other, said), value in found.items() if other == name and wanted <= said)


async def fetch(app, method="GET", accept="text/plain"):
    """What Prometheus gets: the status, and the lines as name and value."""
    sent = []

    async def send(message):
        sent.append(message)

    await app(
        {"type": "http", "method": method, "headers": [(b"accept", accept.encode())]}, None, send
    )
    lines = [
        line.rsplit(" ", 1)
        for line in sent[1]["body"].decode().splitlines()
        if not line.startswith("#")
    ]
    return sent[0]["status"], {name: float(value) for name, value in lines} if sent[0][
        "status"
    ] == 200 else {}


async def play_some(system, store=None):
    """One run that completes, with a tool and tokens; one that fails."""
    reply = Message("assistant", "done", usage=Usage(7, 3, 2, 1))
    await Runner(
        chat("A", ToolCalls(look_up={}), reply, tools=[look_up]), system=system, store=store
    ).query("q", streaming=True)
    await Runner(
        chat("A", ToolCalls(fail={}), tools=[fail], on_tool_error="raise"), system=system
    ).query("q")


def test_runs_tokens_models_and_tools_are_measured(run, measured):
    async def main():
        async with ActorSystem() as system:
            await play_some(system)

    run(main())
    found = measured()
    assert total(found, "offbook.runs", offbook__status="completed") == 1
    assert total(found, "offbook.runs", offbook__status="failed", gen_ai__agent__name="A") == 1
    assert total(found, "offbook.runs.active") == 0
    assert total(found, "gen_ai.workflow.duration") == 2
    assert (
        total(found, "gen_ai.client.operation.duration", gen_ai__request__model="ScriptedModel")
        == 3
    )
    assert total(found, "gen_ai.client.operation.time_to_first_chunk") >= 1
    assert total(found, "gen_ai.client.token.usage", gen_ai__token__type="cached") == 0, (
        "the conventions know input and output"
    )
    assert (
        total(
            found,
            "gen_ai.workflow.duration",
            gen_ai__workflow__name="A",
            gen_ai__operation__name="invoke_workflow",
            error__type="ToolError",
        )
        == 1
    )
    assert (
        total(
            found,
            "gen_ai.client.token.usage",
            gen_ai__token__type="input",
            gen_ai__request__model="ScriptedModel",
        )
        == 1
    )
    assert total(found, "gen_ai.execute_tool.duration", gen_ai__tool__name="look_up") == 1
    assert (
        total(
            found,
            "gen_ai.execute_tool.duration",
            gen_ai__tool__name="fail",
            error__type="ToolError",
        )
        == 1
    )


def test_a_tool_that_there_is_not_makes_no_name_of_a_measure(run, measured):
    async def main():
        await Runner(chat("A", ToolCalls(made_up={}), "done")).query("q")

    run(main())
    assert total(measured(), "gen_ai.execute_tool.duration", gen_ai__tool__name="unknown") == 1
    assert total(measured(), "gen_ai.execute_tool.duration", gen_ai__tool__name="made_up") == 0


def test_turns_and_writes_are_measured(run, measured):
    async def main():
        session = Runner(chat("A", "one", "two"), store=MemoryStore(), durability="step").session(
            "s"
        )
        await session.query("q")
        await session.query("q")

    run(main())
    assert total(measured(), "offbook.turns", offbook__status="completed") == 2
    assert total(measured(), "offbook.store.write.duration") > 2


def test_actors_mailboxes_and_restarts_are_measured(run, measured, gate):
    class Busy(Actor):
        async def on_receive(self, message):
            if message == "fail":
                raise ValueError(message)
            await gate.wait()

    async def main():
        async with ActorSystem("one") as system:
            # From here on the system is known.
            await Runner(chat("A", "done"), system=system).query("q")
            failing = system.spawn(Busy, supervision=Restart(backoff=Backoff(initial=0)))
            failing.tell("fail")
            ref = system.spawn(Busy)
            for _ in range(4):
                ref.tell("wait")
            await gate.reached()
            while not system.stats().restarts:
                await asyncio.sleep(0)
            found = await asyncio.to_thread(measured)
            gate.open()
        return found

    found = run(main())
    assert total(found, "offbook.mailbox.messages", offbook__system="one") == 3
    assert total(found, "offbook.mailbox.deepest", offbook__system="one") == 3
    assert total(found, "offbook.actor.restarts", offbook__system="one") == 1


def test_interrupts_that_wait_are_measured_with_their_age_until_they_are_answered(
    run, measured, store_of, monkeypatch
):
    monkeypatch.setattr(watched_system, "_FRESH", 0.0)
    store = store_of("sqlite")

    async def main():
        async with ActorSystem() as system:
            waiting = Runner(
                chat("A", ToolCalls(ask={}), tools=[ask]), system=system, store=store
            ).query("q")
            await waiting
            before = await asyncio.to_thread(measured)
            await Runner(chat("A", "done", tools=[ask]), system=system, store=store).resume(
                waiting.checkpoint_id, data="yes"
            )
            return before, await asyncio.to_thread(measured)

    before, after = run(main())
    assert total(before, "offbook.interrupts.waiting") == 1
    assert total(before, "offbook.interrupts.oldest") >= 0
    assert total(after, "offbook.interrupts.waiting") == 0


def test_prometheus_fetches_the_measures_of_one_system(run):
    async def main():
        async with ActorSystem() as system:
            app = prometheus_app(system)
            await play_some(system, MemoryStore())
            return await fetch(app)

    status, found = run(main())
    assert status == 200
    assert found['offbook_runs_total{agent="A",status="completed"}'] == 1
    assert found['offbook_runs_total{agent="A",status="failed"}'] == 1
    assert (
        found['offbook_tokens_total{kind="input",model="ScriptedModel",provider="ScriptedModel"}']
        == 7
    )
    assert found['offbook_tool_seconds_count{agent="A",failed="true",tool="fail"}'] == 1
    assert found["offbook_actors"] >= 0
    assert found["offbook_actor_restarts_total"] == 0


def test_prometheus_sees_what_waits_in_the_stores_of_runners(run, store_of):
    store = store_of("sqlite")

    async def main():
        async with ActorSystem() as system:
            runner = Runner(chat("A", ToolCalls(ask={}), tools=[ask]), system=system, store=store)
            await runner.query("q")
            _, found = await fetch(prometheus_app(system, [runner]))
            return found

    found = run(main())
    assert found["offbook_interrupts_waiting"] == 1
    assert found["offbook_interrupts_oldest_seconds"] >= 0


def test_prometheus_of_one_system_counts_no_run_of_another(run):
    async def main():
        async with ActorSystem() as system:
            app = prometheus_app(system)
            with ActorSystem.in_thread("other") as other:
                await Runner(chat("A", "done"), system=other).query("q")
            return await fetch(app)

    _, found = run(main())
    assert not [name for name in found if name.startswith("offbook_runs_total")]


def test_prometheus_is_refused_what_it_cannot_have(run):
    with pytest.raises(UsageError, match="system must be the ActorSystem"):
        prometheus_app("system")

    async def main():
        async with ActorSystem() as system:
            app = prometheus_app(system)
            return await fetch(app, "POST"), await fetch(app, accept="application/openmetrics-text")

    (refused, _), (status, _) = run(main())
    assert (refused, status) == (405, 200)


@pytest.mark.parametrize("how", ["hangs up", "stays"])
def test_a_follower_is_counted_as_one_whether_or_not_it_stays(run, measured, how):
    async def main():
        gate = asyncio.Event()

        async def wait(_context):
            await gate.wait()

        async with ActorSystem() as system:
            runner = Runner(
                PlannedAgent("A", "begun", wait, "done"),
                system=system,
                store=MemoryStore(),
                durability="step",
            )
            begun = runner.query("q", run_id="r", detached=True)
            following = runner.attach("r")
            events = aiter(following)
            await anext(events)
            if how == "hangs up":
                await events.aclose()
                await following.wait_ended()
            gate.set()
            await begun
            await following.wait_ended()

    run(main())
    found = measured()
    assert total(found, "offbook.runs", offbook__status="completed") == 1
    assert total(found, "offbook.runs", offbook__status="followed") == 1
    assert total(found, "offbook.runs") == 2
    assert total(found, "offbook.runs.active") == 0
