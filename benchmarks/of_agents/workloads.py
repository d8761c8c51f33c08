"""What `agents.py` measures: the questions, and how much of each makes one round."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from benchmarks.contenders.base import Load
from benchmarks.lab.report import Measure

__all__ = [
    "FULL",
    "IN_PROCESSES",
    "MEASURES",
    "PEERS_MODULES",
    "QUICK",
    "SIZES_FULL",
    "SIZES_QUICK",
    "WAITS",
]

# In rounds that are interleaved: one operation is a definition, a run, a transfer or an event.
MEASURES: Final = (
    Measure(
        "define_shared",
        "W1 define, shared tool",
        "one definition of an agent with a tool that all share",
    ),
    Measure("define_own", "W1 define, own tool", "one definition of an agent with a new tool"),
    Measure(
        "define_ready",
        "W1 the same, until it runs",
        "and a Runner around it, with the tool's schema",
    ),
    Measure("turn", "W2 one turn", "one run: the model answers at once"),
    Measure(
        "turns_at_once", "W2c one turn, at once", "one of 1,000 runs that are started together"
    ),
    Measure("turns_alive", "W2c one turn, all alive", "the same, each model giving way once"),
    Measure("tool", "W3 tool, async", "one run: a call of an async tool, the answer"),
    Measure("tool_thread", "W3 tool, in a thread", "one run: the same with a plain def"),
    Measure("transfer", "W4 transfer", "one run: one hands over, the other answers"),
    Measure("transfers_10", "W4 one of 10 transfers", "one transfer in a run with 10"),
    Measure("transfers_200", "W4 one of 200 transfers", "one transfer in a run with 200"),
    Measure("handoff", "W4 handoff", "one run: one hands over by handoff(), the other answers"),
    Measure("handoffs_10", "W4 one of 10 handoffs", "one handoff in a run with 10"),
    Measure("handoffs_200", "W4 one of 200 handoffs", "one handoff in a run with 200"),
    Measure(
        "resumes_memory",
        "W7 interrupt, resume",
        "one run: its tool waits to be approved; kept in memory, and resumed",
    ),
    Measure("resumes_sqlite", "W7 the same, in SQLite", "the same, kept in a file"),
    Measure("event", "an event", "making an event and stamping it"),
)

# For these, the time is that beyond the time of the models, which sleep.
WAITS: Final = (
    Measure("in_sequence", "W5s 10 in sequence", "each model sleeps 50 ms: the time beyond 500 ms"),
    Measure("in_parallel", "W5p 100 in parallel", "each model sleeps 50 ms: the time beyond 50 ms"),
)

# In processes of their own.
IN_PROCESSES: Final = ("definitions", "sessions", "imports")

FULL: Final[Mapping[str, Load]] = {
    "define_shared": Load(1000),
    "define_own": Load(200),
    "define_ready": Load(200),
    "turn": Load(300),
    "turns_at_once": Load(1, 1000),
    "turns_alive": Load(1, 1000),
    "tool": Load(200),
    "tool_thread": Load(100),
    "transfer": Load(200),
    "transfers_10": Load(20, 10),
    "transfers_200": Load(1, 200),
    "handoff": Load(200),
    "handoffs_10": Load(20, 10),
    "handoffs_200": Load(1, 200),
    "resumes_memory": Load(100),
    "resumes_sqlite": Load(50),
    "event": Load(2000),
    "in_sequence": Load(1, 10),
    "in_parallel": Load(1, 100),
}
QUICK: Final[Mapping[str, Load]] = {
    "define_shared": Load(100),
    "define_own": Load(20),
    "define_ready": Load(20),
    "turn": Load(50),
    "turns_at_once": Load(1, 100),
    "turns_alive": Load(1, 100),
    "tool": Load(30),
    "tool_thread": Load(20),
    "transfer": Load(30),
    "transfers_10": Load(20, 10),
    "transfers_200": Load(1, 200),
    "handoff": Load(30),
    "handoffs_10": Load(20, 10),
    "handoffs_200": Load(1, 200),
    "resumes_memory": Load(20),
    "resumes_sqlite": Load(10),
    "event": Load(200),
    "in_sequence": Load(1, 3),
    "in_parallel": Load(1, 20),
}

# The sizes and repetitions of the measurements in processes of their own.
SIZES_FULL: Final[Mapping[str, tuple[int, ...]]] = {
    "definitions": (10_000,),
    "sessions": (1_000, 10_000),
    "objects": (1_000,),
    "imports": (7,),
}
SIZES_QUICK: Final[Mapping[str, tuple[int, ...]]] = {
    "definitions": (500,),
    "sessions": (200,),
    "objects": (100,),
    "imports": (1,),
}

# The module that is imported, by contender; the last two are heavy libraries, for comparison.
PEERS_MODULES: Final[Mapping[str, str]] = {
    "offbook": "offbook.actors",
    "openai-agents": "agents",
    "agno": "agno.agent",
    "autogen-agentchat": "autogen_agentchat.agents",
    "openai": "openai",
    "pydantic": "pydantic",
}
