"""One model turn over real HTTP, whole and streamed: this project on both of its ways, what it
stands on, and other frameworks, by CPU and by the clock.

    python -m benchmarks http                               all of it; some ten minutes, and some
    for the peers' environments
    python -m benchmarks http --peer agno --only whole_50 stream_50
    python -m benchmarks http --quick --no-peers            some seconds: whether it works. Its
    figures mean nothing

Each contender has a process of its own, and a peer an environment of its own; the server has a
process, too. Rounds are interleaved. What counts is the CPU time of the contender's process: the
time on the clock depends on what else the machine does.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime as dt
import json
import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

# Run by its path: what is imported below is found beside this folder, not in it.
if not __package__:
    sys.path[0] = str(Path(__file__).parents[1])

try:
    from rich.console import Console
    from rich.markdown import Markdown

    from benchmarks.lab.catalogue import RESULTS, ROOT
    from benchmarks.lab.machine import busy_note, describe
    from benchmarks.lab.plot import Bar, Panel, Row, draw
    from benchmarks.lab.report import duration, write_json
    from benchmarks.of_http.contenders import CONTENDERS
    from benchmarks.of_http.peers import PEERS
    from benchmarks.of_http.table import as_markdown, median_of
    from benchmarks.of_http.workloads import WORKLOADS, Workload
    from benchmarks.of_peers.environments import PEERS as ENVIRONMENTS
    from benchmarks.of_peers.environments import EnvironmentFailed, default_folder, prepare
except ModuleNotFoundError as error:
    sys.exit(f"{error}. Install what the benchmarks need: pip install -e '.[bench]'")

_COLOURS = ("#b5432a", "#d99a86", "#5b6b7a", "#9aa6b1", "#4f7d6b", "#7d6b4f", "#6b4f7d", "#4f6b7d")
_WITHOUT_PACED = frozenset((*PEERS, "offbook, client=", "openai client", "aiohttp by hand"))


def arguments(given: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--peer",
        action="extend",
        nargs="+",
        choices=[*PEERS],
        help="only these of the other frameworks",
    )
    parser.add_argument("--no-peers", action="store_true", help="none of them")
    parser.add_argument(
        "--only",
        action="extend",
        nargs="+",
        choices=[*WORKLOADS],
        metavar="WORKLOAD",
        help=f"any of {', '.join(WORKLOADS)}",
    )
    parser.add_argument("--rounds", type=int, help="rounds that count (5; with --quick, 1)")
    parser.add_argument("--timeout", type=float, default=300.0, help="seconds for a round (300)")
    parser.add_argument("--quick", action="store_true", help="small rounds: a smoke test")
    parser.add_argument(
        "--environments",
        type=Path,
        default=default_folder(),
        help="the folder of the peers' environments (%(default)s)",
    )
    parser.add_argument(
        "--output",
        type=Path,
        help="the JSON file, beside which the table and the plot go (results/http.json)",
    )
    parser.add_argument("--no-plot", action="store_true")
    options = parser.parse_args(given)
    options.rounds = options.rounds or (1 if options.quick else 5)
    options.output = options.output or RESULTS / (
        "http-quick.json" if options.quick else "http.json"
    )
    options.workloads = [
        one.shrunk() if options.quick else one
        for one in WORKLOADS.values()
        if not options.only or one.key in options.only
    ]
    options.peers = (
        []
        if options.no_peers
        else [name for name in PEERS if not options.peer or name in options.peer]
    )
    return options


class Speaker:
    """A contender's process."""

    def __init__(self, name: str, interpreter: Path, environment: dict[str, str]) -> None:
        command = [str(interpreter), "-m", "benchmarks.of_http.process", name]
        self.errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 -- closed with the process
        self.process = subprocess.Popen(
            command,
            cwd=ROOT,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            text=True,
        )

    def ask(self, workload: Workload, url: str, turns: int) -> dict[str, Any]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(
            json.dumps({"kind": workload.kind, "width": workload.width, "turns": turns, "url": url})
            + "\n"
        )
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            self.errors.seek(0)
            return {"failed": f"its process ended: {self.errors.read()[-500:].strip()}"}
        answer: dict[str, Any] = json.loads(line)
        return answer

    def close(self) -> None:
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.errors.close()
        if self.process.stdout is not None:
            self.process.stdout.close()


@contextlib.contextmanager
def serving(*more: str) -> Iterator[int]:
    """The provider's port."""
    command = [sys.executable, "-m", "benchmarks.of_http.server", *more]
    with subprocess.Popen(
        command,
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as server:
        assert server.stdout is not None
        assert server.stdin is not None
        try:
            yield int(server.stdout.readline())
        finally:
            server.stdin.close()


def make_certificate(folder: Path) -> tuple[Path, Path]:
    """A certificate of this machine's, signed by itself, which the contenders' processes are told
    to trust.
    """
    certificate, key = folder / "certificate.pem", folder / "key.pem"
    names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    kind = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
    subprocess.run(
        ["openssl", "req", "-x509", *kind, "-keyout", str(key), "-out", str(certificate), *names],
        check=True,
        capture_output=True,
    )
    return certificate, key


def speakers_of(
    options: argparse.Namespace, console: Console, environment: dict[str, str]
) -> dict[str, Speaker]:
    speakers = {name: Speaker(name, Path(sys.executable), environment) for name in CONTENDERS}
    for name in options.peers:
        try:
            interpreter = prepare(ENVIRONMENTS[name], options.environments, say=console.print)
        except EnvironmentFailed as error:
            console.print(f"{name} is left out.", error, style="yellow")
        else:
            speakers[name] = Speaker(name, interpreter, environment)
    return speakers


def measure(
    options: argparse.Namespace, console: Console
) -> tuple[dict[tuple[str, str], list[dict[str, Any]]], dict[tuple[str, str], str], list[str]]:
    rounds: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    missing: dict[tuple[str, str], str] = {}
    with contextlib.ExitStack() as stack:
        certificate, key = make_certificate(
            Path(stack.enter_context(tempfile.TemporaryDirectory()))
        )
        silent = {
            "AGNO_TELEMETRY": "false",
            "OPENAI_AGENTS_DISABLE_TRACING": "1",
            "LANGSMITH_TRACING": "false",
            "OTEL_SDK_DISABLED": "true",
        }
        environment = {**os.environ, **silent, "SSL_CERT_FILE": str(certificate), "NO_PROXY": "*"}
        plain, tls = (
            stack.enter_context(serving()),
            stack.enter_context(serving("--certificate", str(certificate), "--key", str(key))),
        )
        speakers = speakers_of(options, console, environment)
        for speaker in speakers.values():
            stack.callback(speaker.close)
        for workload in options.workloads:
            prefix = "/paced" if workload.kind == "paced" else ""
            url = (
                f"https://127.0.0.1:{tls}{prefix}/v1"
                if workload.tls
                else f"http://127.0.0.1:{plain}{prefix}/v1"
            )
            for number in range(-1, options.rounds):
                names = [*speakers]
                first = max(number, 0) % len(names)
                for name in (*names[first:], *names[:first]):
                    if (workload.key, name) in missing or (
                        workload.kind == "paced" and name in _WITHOUT_PACED
                    ):
                        continue
                    console.print(
                        f"{workload.title}, round {number + 1}: {name}",
                        highlight=False,
                        style="dim",
                    )
                    turns = (
                        max(workload.width, workload.turns // 4) if number < 0 else workload.turns
                    )
                    answer = speakers[name].ask(workload, url, turns)
                    if "failed" in answer or "cannot" in answer:
                        missing[workload.key, name] = str(answer.get("failed") or answer["cannot"])
                        console.print(f"  {missing[workload.key, name]}", style="yellow")
                    elif number >= 0:
                        rounds[workload.key, name].append(answer)
    return dict(rounds), missing, [*speakers]


def draw_page(
    options: argparse.Namespace, rounds: Any, names: list[str], footnote: str
) -> list[Path]:
    rows = {
        name: Row(name, _COLOURS[index % len(_COLOURS)], bold=name == "offbook")
        for index, name in enumerate(names)
    }
    panels = []
    for workload in options.workloads:
        if workload.kind == "paced":
            continue
        bars: dict[str, Bar | str] = {}
        for name in names:
            cpu = median_of(rounds, workload.key, name, "cpu")
            most = max(
                (float(one["cpu"]) for one in rounds.get((workload.key, name), ())), default=None
            )
            bars[name] = "not asked" if cpu is None else Bar(cpu, most)
        panels.append(
            Panel(
                workload.title,
                "CPU time of one turn: median and worst round",
                bars,
                duration,
                ("median", "worst", ""),
            )
        )
    return draw(
        options.output,
        title="One turn over HTTP",
        subtitle="less is better",
        rows=rows,
        panels=panels,
        footnote=footnote,
    )


def main() -> None:
    options = arguments()
    console = Console(stderr=True)
    machine = describe()
    try:
        rounds, missing, names = measure(options, console)
    except KeyboardInterrupt:
        sys.exit("\nStopped.")
    machine["load_after"] = describe()["load"]
    loads = f"load {machine['load']} when it began, {machine['load_after']} when it ended"
    footnote = (
        f"{machine['processor']}, {machine['cores']} cores, {machine['python']}; {loads}; "
        f"{options.rounds} rounds, interleaved."
    )
    heading = f"# One turn over HTTP\n\n{footnote}\n\n{busy_note(machine)}".rstrip()
    text = as_markdown(rounds, {name: name for name in names}, missing, heading)
    options.output.parent.mkdir(parents=True, exist_ok=True)
    table = options.output.with_suffix(".md")
    table.write_text(text, encoding="utf-8")
    write_json(
        options.output,
        {
            "benchmark": "http",
            "made": dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
            "machine": machine,
            "options": {"quick": options.quick, "rounds": options.rounds},
            "series": [
                {"workload": workload, "contender": contender, "rounds": found}
                for (workload, contender), found in rounds.items()
            ],
            "missing": [
                {"workload": workload, "contender": contender, "why": why}
                for (workload, contender), why in missing.items()
            ],
        },
    )
    written = [options.output, table]
    if not options.no_plot and any(one.kind != "paced" for one in options.workloads):
        written += draw_page(options, rounds, names, footnote)
    Console().print(Markdown(text))
    console.print("Written:", ", ".join(os.path.relpath(path) for path in written))


if __name__ == "__main__":
    main()
