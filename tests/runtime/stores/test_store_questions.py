"""The questions that docs/guides/stores.md answers in SQL: each is asked of SQLite and PostgreSQL,
with the client that an operator has.
"""

import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from offbook.actors import ChatModelAgent, ToolContext, tool
from offbook.runtime import (
    ActorSystem,
    Message,
    PostgresStore,
    Runner,
    SQLiteStore,
    ToolCall,
    Usage,
    encrypted,
)
from offbook.runtime.stores import RunEntry

PAGE = Path(__file__).parents[3] / "docs" / "guides" / "stores.md"
QUESTIONS = dict(re.findall(r"^([^\n]+\?)\n\n```sql\n(.+?);\n```", PAGE.read_text(), re.MULTILINE))


class Model:
    async def generate(self, request):
        if request.messages[-1].text == "fail":
            raise ValueError("no such order: ü")
        if request.messages[-1].text == "refund":
            return Message.assistant("", tool_calls=(ToolCall("c", "refund", "{}"),))
        return Message.assistant("done", usage=Usage(100, 10, requests=1))


@tool
def refund(context: ToolContext) -> str:
    """Refund it."""
    return str(context.interrupt("may I?"))


AGENT = ChatModelAgent(name="Desk", model=Model(), tools=[refund])
LOST = RunEntry(
    "lost",
    "Other",
    "",
    "running",
    1,
    ("tenant\0other",),
    b"",
    claim="offbook:open:5:Other:lost",
)
STUCK = LOST.replace(
    key="stuck", status="stuck", claim="", attempts=3, error="it ended its process"
)


@pytest.fixture(params=["sqlite", "postgres"])
def kind(request):
    return request.param


@pytest.fixture
def asked(kind, store_recipe):
    """Makes a store, and a function that asks it."""
    name, arguments, options = store_recipe(kind)
    store = {"SQLiteStore": SQLiteStore, "PostgresStore": PostgresStore}[name](
        *arguments, **options
    )

    def ask(question):
        sql = QUESTIONS[question]
        if kind == "sqlite":
            with closing(sqlite3.connect(arguments[0])) as connection:
                connection.row_factory = sqlite3.Row
                return [dict(row) for row in connection.execute(sql)]
        import psycopg
        from psycopg.rows import dict_row

        for view in ("run_list", "label_list"):
            sql = re.sub(rf"\b{view}\b", f'"{store._prefix}{view}"', sql)
        with psycopg.connect(arguments[0], row_factory=dict_row) as connection:
            return connection.execute(sql).fetchall()

    return store, ask


async def filled(store):
    async with ActorSystem() as system:
        runner = Runner(AGENT, system=system, store=store, durability="step")
        session = runner.session("s")
        for text in ("one", "two"):
            await session.query(text)
        await runner.query("refund", run_id="waits", labels={"tenant": "acme"})
        await runner.query("fail", run_id="failed")
        await store.commit(None, [LOST, STUCK])


def test_each_question_has_its_answer(run, asked):
    store, ask = asked

    async def main():
        await filled(store)
        (waits,) = ask("What waits for an answer, the longest first?")
        assert (waits["run"], waits["agent"], waits["session"]) == ("waits", "Desk", None)
        assert waits["checkpoint"] == "waits"
        assert str(waits["updated"]).startswith("20")
        (stuck,) = ask("What is stuck, and why?")
        assert (stuck["run"], stuck["attempts"], stuck["error"]) == (
            "stuck",
            3,
            "it ended its process",
        )
        assert [dict(row) for row in ask("What does each session cost?")] == [
            {"session": "s", "runs": 2, "input": 200, "output": 20, "requests": 2}
        ]
        (lost,) = ask("Which runs have no process, and wait for `recover()`?")
        assert (lost["run"], lost["status"]) == ("lost", "running")
        assert [
            tuple(row.values()) for row in ask("How many runs does each agent have, by status?")
        ] == [
            ("Desk", "completed", 2),
            ("Desk", "failed", 1),
            ("Desk", "interrupted", 1),
            ("Other", "running", 1),
            ("Other", "stuck", 1),
        ]
        (failed,) = ask("What failed, the latest first?")
        assert (failed["run"], failed["last_agent"]) == ("failed", "Desk")
        assert "no such order: ü" in failed["error"]
        (labelled,) = ask("Which runs have a label?")
        assert tuple(labelled.values()) == ("waits", "interrupted")
        assert len(QUESTIONS) == 7, "each is tested here"
        await store.aclose()

    run(main())


def test_a_run_at_work_has_its_owner(run, asked):
    store, ask = asked

    async def main():
        await store.keep_alive("me", 60, first=True)
        await store.claim(LOST.claim, "me", [LOST])
        assert ask("Which runs have no process, and wait for `recover()`?") == []
        await store.revoke("me")
        assert len(ask("Which runs have no process, and wait for `recover()`?")) == 1
        await store.aclose()

    run(main())


def test_what_is_encrypted_is_not_in_the_columns(run, asked):
    store, ask = asked

    async def main():
        await filled(encrypted(store, keys=["A" * 43]))
        (failed,) = ask("What failed, the latest first?")
        assert (failed["run"], failed["last_agent"], failed["error"]) == ("failed", None, None)
        (cost,) = ask("What does each session cost?")
        assert (cost["runs"], cost["input"]) == (2, 0)
        await store.aclose()

    run(main())


def test_a_text_that_is_no_utf8_is_shown_all_the_same(run, asked):
    store, ask = asked

    async def main():
        await store.commit(None, [STUCK.replace(key="a \udc80 b", error="\udcff")])
        if isinstance(store, PostgresStore):
            (row,) = ask("What is stuck, and why?")
            assert row["run"].startswith("a ")
        await store.aclose()

    run(main())
