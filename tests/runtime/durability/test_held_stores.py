"""A store that is held, and one of another environment: nothing is begun, continued or recovered in
it.
"""

import asyncio

import pytest

from offbook.actors import ChatModelAgent, tool
from offbook.runtime import ActorSystem, Message, Runner, StoreError, ToolCall
from offbook.runtime.durability.copies.store_marks import environment_of, hold, refusal, release
from offbook.runtime.durability.store_access import StoreAccess
from offbook.runtime.stores.marks import ENVIRONMENT
from tests.doubles.held_stores import beside, soon

KINDS = ("sqlite", "redis", "postgres")


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


@tool(needs_approval=True)
def refund(order: int) -> str:
    """Give the money back."""
    return f"refunded {order}"


class Desk:
    """A model that wants a refund for what it is asked; asked to wait, it waits until its gate is
    open.
    """

    def __init__(self, gate=None):
        self.gate, self.reached = gate, asyncio.Event()

    async def generate(self, request):
        if self.gate is not None:
            self.reached.set()
            await self.gate.wait()
        return Message.assistant(
            "", (ToolCall(f"c{len(request.messages)}", "refund", '{"order": 7}'),)
        )


def desk(model=None):
    return ChatModelAgent(name="desk", model=model or Desk(), tools=[refund])


async def leave_unfinished(store, run_id):
    """A run whose process is lost."""
    model = Desk(asyncio.Event())
    async with ActorSystem() as system:
        begun = Runner(desk(model), store=store, durability="step", system=system).query(
            "refund", run_id=run_id
        )
        await soon(model.reached.wait())
    return begun


def runner_of(store, **options):
    """A Runner as another process has one."""
    return Runner(
        desk(),
        store=store,
        system=options.pop("system", None) or beside(),
        **{"durability": "step", **options},
    )


async def refused(work, match="is held since .* UTC by .*offbook release STORE"):
    with pytest.raises(StoreError, match=match):
        (await soon(work)).raise_for_error()


def test_nothing_is_begun_or_continued_in_a_store_that_is_held(run, store_of, kind):
    async def main():
        store = store_of(kind, "one")
        waiting = await runner_of(store).query("refund", run_id="waits")
        assert waiting.status == "interrupted"
        await leave_unfinished(store, "left")
        assert await hold(StoreAccess(store))
        assert not await hold(StoreAccess(store)), "it is held already"

        again = store_of(kind, "one")
        runner = runner_of(again)
        await refused(runner.query("refund"))
        await refused(runner.query("refund", run_id="named"))
        await refused(runner.query("refund", run_id="detached", detached=True))
        await refused(runner_of(again, durability="interrupt").query("refund"))
        await refused(runner.session("s").query("refund"))
        await refused(runner.approve(waiting.interrupts[0]))
        await refused(runner.recover())
        assert {info.id: str(info.status) for info in await runner.runs()} == {
            "waits": "interrupted",
            "left": "drained",
        }
        assert [info.id for info in await runner.pending()] == ["waits"]

        await runner.forget("waits")
        assert [info.id for info in await runner.runs()] == ["left"]
        assert await release(StoreAccess(again))
        assert not await release(StoreAccess(again))
        (recovered,) = await runner.recover()
        assert (recovered.id, str((await recovered).status)) == ("left", "interrupted")

    run(main())


def test_a_process_that_waits_for_runs_to_recover_says_that_the_store_is_held_and_begins_when_it_is_released(
    run, store_of, kind, caplog
):
    async def main():
        store = store_of(kind)
        await leave_unfinished(store, "left")
        access = StoreAccess(store)
        await hold(access)
        async with ActorSystem() as system:
            runner = runner_of(store, system=system)
            async with runner.recover_every(0.05):
                while "is held since" not in caplog.text:
                    await asyncio.sleep(0.01)
                assert (await runner.info("left")).status == "drained"
                await release(access)
                assert (await soon(runner.attach("left"))).status == "interrupted"

    run(main())


def test_a_process_at_work_loses_its_runs_when_it_next_prolongs_its_lease(
    run, store_of, kind, caplog
):
    async def main():
        store, model = store_of(kind), Desk(asyncio.Event())
        async with ActorSystem(lease_seconds=2) as system:
            going = Runner(desk(model), store=store, durability="step", system=system).query(
                "refund", run_id="going"
            )
            await soon(model.reached.wait())
            await hold(StoreAccess(store))
            result = await soon(going)
            assert type(result.error).__name__ == "RunLost"
            assert "The runs of this process end here" in caplog.text
            await runner_of(store).forget("going")
            assert await runner_of(store).runs() == []

    run(main())


def test_a_mark_has_no_age_and_no_end(run, store_of, kind):
    async def main():
        store = store_of(kind, ttl=0.05)
        access = StoreAccess(store)
        await release(access, "production")
        await hold(access)
        await store.set("other", b"x")
        await asyncio.sleep(0.1)
        await store.prune(older_than=0.05)
        assert await store.get("other") is None
        assert await access.is_held()
        assert await environment_of(access) == "production"

    run(main())


def test_a_store_belongs_to_the_environment_that_it_was_first_used_in(
    run, store_of, kind, monkeypatch
):
    async def main():
        store = store_of(kind, "one")
        assert await environment_of(StoreAccess(store)) is None
        monkeypatch.setenv("OFFBOOK_ENV", "production")
        assert (await runner_of(store).query("refund", run_id="r")).status == "interrupted"
        assert await environment_of(StoreAccess(store)) == "production"

        for other in ("staging", ""):
            monkeypatch.setenv("OFFBOOK_ENV", other)
            runner = runner_of(store_of(kind, "one"))
            text = (
                "belongs to the environment 'production', and this process runs in "
                f"'{other}'.*offbook release STORE --env"
            )
            await refused(runner.query("refund"), text)
            await refused(runner.recover(), text)
            await refused(runner.forget("r"), text)
            assert [info.id for info in await runner.runs()] == ["r"], "it can be looked at"

        monkeypatch.setenv("OFFBOOK_ENV", "production")
        assert (await runner_of(store_of(kind, "one")).query("refund")).status == "interrupted"

    run(main())


def test_a_store_that_was_used_without_an_environment_belongs_to_that(
    run, store_of, kind, monkeypatch
):
    async def main():
        store = store_of(kind)
        assert (await runner_of(store).query("refund")).status == "interrupted"
        assert await environment_of(StoreAccess(store)) is None, "that costs nothing"
        monkeypatch.setenv("OFFBOOK_ENV", "staging")
        await refused(
            runner_of(store).query("refund"),
            "belongs to the environment '', and this process runs in 'staging'",
        )

        access = StoreAccess(store)
        await hold(access)
        assert await release(access, "staging")
        assert (await runner_of(store).query("refund")).status == "interrupted"
        monkeypatch.delenv("OFFBOOK_ENV")
        await refused(runner_of(store).query("refund"), "belongs to the environment 'staging'")
        await release(access, "")
        assert (await runner_of(store).query("refund")).status == "interrupted"

    run(main())


def test_of_two_processes_that_use_a_store_first_one_names_its_environment(
    run, store_of, kind, monkeypatch
):
    async def main():
        accesses = [StoreAccess(store_of(kind, "one")) for _ in range(6)]
        names = iter(["a", "b"] * 100)
        monkeypatch.setattr(
            "offbook.runtime.durability.copies.store_marks.current_environment", lambda: next(names)
        )
        found = await asyncio.gather(*map(refusal, accesses))
        assert found.count(None) >= 1
        kept = await environment_of(accesses[0])
        assert kept in ("a", "b")
        assert len({await access.get(ENVIRONMENT) for access in accesses}) == 1

    run(main())
