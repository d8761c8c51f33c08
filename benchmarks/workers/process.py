"""The process of one contender: `python -m benchmarks.workers.process agno`.

It reads a request from each line of its input, and answers with a line of JSON.

All of its rounds are on one event loop, as those of a service are, so that clients which are bound
to their loop can stay. Of the project, it imports the contender, the stopwatch and the provider's
texts: its environment has the peer, and psutil.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import os
import sys
import traceback
from typing import Any

from benchmarks.contenders.agents_base import KEYS, AgentContender, load_contender
from benchmarks.contenders.base import Load
from benchmarks.lab.measure import Stopwatch, percentile

__all__ = ["one_round"]

# None of these is asked to report anything to anybody.
_SILENT = {
    "AGNO_TELEMETRY": "false",
    "OPENAI_AGENTS_DISABLE_TRACING": "1",
    "LANGSMITH_TRACING": "false",
    "LANGCHAIN_TRACING_V2": "false",
    "OTEL_SDK_DISABLED": "true",
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
}


def one_round(
    contender: AgentContender, runner: asyncio.Runner, asked: dict[str, Any]
) -> dict[str, Any]:
    """One round, and what it took."""
    contender.provider = asked.get("provider", "")
    watch = Stopwatch()
    runner.run(getattr(contender, asked["measure"])(Load(asked["times"], asked["width"]), watch))
    seconds = watch.nanoseconds / 1e9 / watch.operations
    return {
        "operations": watch.operations,
        "seconds": seconds,
        "cpu_seconds": watch.cpu_nanoseconds / 1e9 / watch.operations,
        "p50": percentile(watch.latencies, 50) / 1e9 if watch.latencies else None,
        "p99": percentile(watch.latencies, 99) / 1e9 if watch.latencies else None,
    }


def _main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("contender", choices=KEYS)
    options = parser.parse_args()
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what a library prints is no answer
    os.environ.update(_SILENT)
    logging.disable(logging.WARNING)
    contender = load_contender(options.contender)
    with asyncio.Runner() as runner:
        print(
            json.dumps(
                {
                    "ready": contender.version(),
                    "cannot": dict(contender.cannot),
                    "differs": dict(contender.differs),
                }
            ),
            file=answers,
            flush=True,
        )
        for line in sys.stdin:
            try:
                answer: dict[str, Any] = one_round(contender, runner, json.loads(line))
            except Exception as error:  # noqa: BLE001 -- whatever a peer does wrong is said in the table
                traceback.print_exc()
                answer = {"failed": f"{type(error).__name__}: {error}"}
            print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    _main()
