"""An environment for each peer: made once, by uv if it is there and by venv and pip otherwise, and
kept for the next run. It names packages, and no host.

Peers do not agree on the versions of what they stand on, and an import of one may slow another: so
each has an environment of its own, and offbook has that of the interpreter that runs the benchmark.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

__all__ = ["PEERS", "EnvironmentFailed", "Peer", "default_folder", "prepare", "versions_of"]

_NEEDED = "psutil"  # what the worker imports beside the peer
_TAIL = 2000
_STAMP = "offbook-benchmark.json"  # in an environment that is complete


class EnvironmentFailed(RuntimeError):
    """An environment could not be made. The text has the end of what the installer said."""


@dataclass(frozen=True, slots=True)
class Peer:
    """What is installed for a contender, and what an import of it is.

    Without requirements, it is measured in the interpreter that runs the benchmark.
    """

    key: str
    requirements: tuple[str, ...]
    module: str


PEERS: Mapping[str, Peer] = {
    peer.key: peer
    for peer in (
        Peer("offbook", (), "offbook.actors"),
        Peer("agno", ("agno", "openai", "sqlalchemy[asyncio]", "aiosqlite"), "agno.agent"),
        Peer(
            "autogen-agentchat",
            ("autogen-agentchat", "autogen-ext[openai]"),
            "autogen_agentchat.agents",
        ),
        Peer(
            "langchain",
            ("langchain", "langchain-openai", "langgraph-checkpoint-sqlite"),
            "langchain.agents",
        ),
        Peer("openai-agents", ("openai-agents",), "agents"),
        Peer("pydantic-ai", ("pydantic-ai-slim[openai]",), "pydantic_ai"),
        # The package itself imports nothing until it is asked.
        Peer("google-adk", ("google-adk", "litellm"), "google.adk.agents.llm_agent"),
        Peer("swarm", ("openai-swarm",), "swarm"),
        Peer("bare", (), "asyncio"),
    )
}


def default_folder() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "offbook-benchmarks"


def prepare(peer: Peer, folder: Path, *, say: Callable[[str], object] = lambda _: None) -> Path:
    """The interpreter of the peer's environment, which is made if it is not there or not
    complete.
    """
    if not peer.requirements:
        return Path(sys.executable)
    wanted = {"requirements": sorted((*peer.requirements, _NEEDED)), "python": sys.version}
    mark = hashlib.sha256(json.dumps(wanted).encode()).hexdigest()[:8]
    place = folder / f"{peer.key}-{sys.version_info[0]}.{sys.version_info[1]}-{mark}"
    interpreter = place / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    if (place / _STAMP).is_file() and interpreter.exists():
        return interpreter
    say(f"an environment for {peer.key}: {', '.join(peer.requirements)}")
    shutil.rmtree(place, ignore_errors=True)  # one that was not finished
    place.parent.mkdir(parents=True, exist_ok=True)
    uv = shutil.which("uv")
    if uv is not None:
        _call([uv, "venv", "--quiet", "--python", sys.executable, str(place)], peer)
        _call(
            [
                uv,
                "pip",
                "install",
                "--quiet",
                "--python",
                str(interpreter),
                *peer.requirements,
                _NEEDED,
            ],
            peer,
        )
    else:
        _call([sys.executable, "-m", "venv", str(place)], peer)
        _call(
            [str(interpreter), "-m", "pip", "install", "--quiet", *peer.requirements, _NEEDED], peer
        )
    (place / _STAMP).write_text(json.dumps(wanted), encoding="utf-8")
    return interpreter


def _call(command: list[str], peer: Peer) -> None:
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        msg = (
            f"The environment of {peer.key} could not be made ({' '.join(command[:4])} ended "
            f"with {done.returncode}):\n{(done.stderr or done.stdout)[-_TAIL:]}"
        )
        raise EnvironmentFailed(msg)


_VERSIONS = (
    "import importlib.metadata as m, json, sys; print(json.dumps({name: m.version(name) for name "
    "in sys.argv[1:]}))"
)


def versions_of(peer: Peer, interpreter: Path) -> dict[str, str]:
    """The versions of what was asked for, without the extras."""
    names = [name.partition("[")[0] for name in peer.requirements] or (
        ["offbook"] if peer.key == "offbook" else []
    )
    done = subprocess.run(
        [str(interpreter), "-c", _VERSIONS, *names], check=True, capture_output=True, text=True
    )
    found: dict[str, str] = json.loads(done.stdout)
    return found
