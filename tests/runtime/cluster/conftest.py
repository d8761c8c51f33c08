"""A store and a ledger for the program of the tests' clusters, and a limit for each test."""

import asyncio

import pytest


@pytest.fixture(autouse=True)
def shop(tmp_path, monkeypatch):
    """What the program is told by its environment. Returns what it has written down."""
    monkeypatch.setenv("STORE", str(tmp_path / "runs.db"))
    monkeypatch.setenv("LEDGER", str(tmp_path / "ledger"))
    monkeypatch.setenv("STEP_SECONDS", "0")

    def steps():
        """Each step that was begun: its run and its number."""
        ledger = tmp_path / "ledger"
        return (
            [tuple(line.split()[1:3]) for line in ledger.read_text().splitlines()]
            if ledger.exists()
            else []
        )

    return steps


@pytest.fixture
def within(run):
    """Run a coroutine that must not take longer than that: nothing of a cluster may hang."""
    return lambda work, seconds=25: run(asyncio.wait_for(work, seconds))
