"""`offbook post`, `tasks`, `schedules`: the inbox of a session, its tasks, an agent's schedules."""

import asyncio
import json
from datetime import timedelta

import pytest

from offbook.actors import ChatModelAgent
from offbook.runtime import ActorSystem, Runner, ScriptedModel, SQLiteStore, ToolCalls
from tests.doubles.commands import command

__all__ = ["command"]


def in_store(tmp_path, work):
    """Call that with a Runner of the agent `Clerk`, in the store of the command."""

    async def main():
        async with ActorSystem() as system, SQLiteStore(tmp_path / "runs.db") as store:
            agent = ChatModelAgent(
                name="Clerk",
                model=ScriptedModel([lambda request: f"You said {request.messages[-1].text}."] * 9),
            )
            return await work(Runner(agent, system=system, store=store, keep="all"))

    return asyncio.run(main())


@pytest.fixture
def posts(tmp_path):
    """The posts that nobody has heard."""
    return lambda: in_store(tmp_path, lambda runner: runner.session("ada").inbox())


async def hello(runner):
    await runner.session("ada").query("hello")


def test_a_post_is_stored_once_for_an_id_and_heard_by_a_process_that_attends(
    command, posts, tmp_path
):
    in_store(tmp_path, hello)
    given = ("post", "ada", "Also book a taxi.", "--agent", "Clerk", "--store", "runs.db")
    done = command(*given, "--id", "m-17", "--when", "turn_end")
    assert (done.exit_code, done.stdout) == (0, "post m-17 is number 1 of session ada\n")
    again = command(*given, "--id", "m-17", "--when", "turn_end")
    assert again.stdout == "post m-17 was posted before, and is number 1 of session ada\n"
    (post,) = posts()
    assert (post.id, post.message.text, post.when) == ("m-17", "Also book a taxi.", "turn_end")
    shown = json.loads(command(*given, "--json").stdout)
    assert (shown["seq"], shown["session_id"], shown["duplicate"]) == (2, "ada", False)
    assert shown["id"] == posts()[1].id

    async def attend(runner):
        async with runner.attending(every=0.05), asyncio.timeout(20):
            while len(await runner.session("ada").history()) < 5:
                await asyncio.sleep(0.01)
        return [one.text for one in await runner.session("ada").history()]

    assert in_store(tmp_path, attend)[2:] == [
        "Also book a taxi.",
        "Also book a taxi.",
        "You said Also book a taxi..",
    ]


def test_a_post_to_an_agent_without_runs_asks_for_the_name(command, tmp_path):
    in_store(tmp_path, hello)
    done = command("post", "ada", "hello", "--agent", "Clark", "--store", "runs.db", "--id", "1")
    assert done.exit_code == 0
    assert done.stdout == (
        "post 1 is number 1 of session ada\n"
        "the store lists no run of agent Clark: check --agent, because only this agent hears the "
        "post\n"
    )


def test_a_post_that_is_wrong_is_refused_in_one_line(command, tmp_path):
    assert "file not found" in command("post", "ada", "hello", "--agent", "Clerk").stderr
    assert not (tmp_path / "offbook.db").exists()
    in_store(tmp_path, hello)
    given = ("post", "ada", "hello", "--agent", "Clerk", "--store", "runs.db")
    wrong = command(*given, "--when", "soon")
    assert wrong.exit_code == 1
    assert "when must be 'safe_point', 'turn_end' or 'preempt', got 'soon'" in wrong.stderr
    command(*given, "--id", "1")
    other = command("post", "ada", "bye", *given[3:], "--id", "1")
    assert (other.exit_code, len(other.stderr.splitlines())) == (1, 1)
    assert "belongs to a post with another content" in other.stderr
    assert command("post", "ada", "hello", "--store", "runs.db").exit_code == 2


def test_schedules_are_listed_with_their_next_times(command, tmp_path):
    async def plan(runner):
        await runner.schedule("tidy", every=timedelta(hours=1), text="Tidy up.")
        return await runner.schedule(
            "report",
            cron="0 9 * * MON-FRI",
            timezone="Europe/Berlin",
            session="team",
            text="Write the\nreport.",
        )

    report = in_store(tmp_path, plan)
    lines = command("schedules", "--agent", "Clerk", "--store", "runs.db").stdout.splitlines()
    assert lines[0] == (
        f"report  {report.next:%Y-%m-%d %H:%M:%S%z}  0 9 * * MON-FRI (Europe/Berlin)  "
        "session team: Write the report."
    )
    assert lines[1].startswith("tidy    ")
    assert lines[1].endswith("  every 1:00:00  no session: Tidy up.")
    shown = [
        json.loads(line)
        for line in command(
            "schedules", "--agent", "Clerk", "--store", "runs.db", "--json"
        ).stdout.splitlines()
    ]
    assert [(one["name"], one["every"], one["session"]) for one in shown] == [
        ("report", None, "team"),
        ("tidy", 3600.0, None),
    ]
    assert shown[0]["next"] == report.next.isoformat()
    assert (
        command("schedules", "--agent", "Nobody", "--store", "runs.db").stdout
        == "no schedules of agent Nobody in runs.db\n"
    )


def test_the_background_tasks_of_a_session_are_listed(command, tmp_path):
    async def main():
        async with ActorSystem() as system, SQLiteStore(tmp_path / "runs.db") as store:
            worker = ChatModelAgent(name="Worker", model=ScriptedModel(["done"]))
            boss = ChatModelAgent(
                name="Boss",
                tools=[worker.as_tool(background=True)],
                model=ScriptedModel([ToolCalls(Worker={"request": "work"}), "started", "heard"]),
            )
            runner = Runner(boss, system=system, store=store, durability="step")
            session = runner.session("ada")
            async with runner.attending(every=0.05), asyncio.timeout(20):
                await session.query("go")
                while len(await session.history()) < 6:
                    await asyncio.sleep(0.01)
            return (await session.tasks())[0]

    task = asyncio.run(main())
    (line,) = command("tasks", "ada", "--store", "runs.db").stdout.splitlines()
    assert line.startswith(f"{task.id}  completed    Worker  since ")
    shown = json.loads(command("tasks", "ada", "--store", "runs.db", "--json").stdout)
    assert (shown["id"], shown["status"], shown["parent"]) == (task.id, "completed", task.parent)
    assert (
        command("tasks", "bob", "--store", "runs.db").stdout
        == "no tasks of session bob in runs.db\n"
    )
