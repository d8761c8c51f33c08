"""The keys under which everything of runs and sessions is in a store.

Owns: these keys. None of them may ever change: stores outlive the versions of this library.
"""

from __future__ import annotations

from typing import Final

__all__ = [
    "PREEMPT",
    "RESERVED",
    "answered_by_key",
    "answered_key",
    "cluster_host_key",
    "cluster_prefix",
    "former_lease_key",
    "history_key",
    "journal_key",
    "open_key",
    "open_prefix",
    "preempt_key",
    "session_key",
    "stop_key",
    "stop_prefix",
    "stuck_key",
    "stuck_prefix",
]

RESERVED: Final = "understudy:"
"""No id of a user's may begin so: the keys of everything but checkpoints do."""

PREEMPT: Final = f"{RESERVED}preempt:"


def answered_key(run_id: str, number: int) -> str:
    """It is there once that save of the run was answered. Another run may have the same checkpoint id some day."""
    return f"{RESERVED}answered:{run_id}@{number}"


def answered_by_key(run_id: str) -> str:
    """Its value says who has answered the interrupts of a run, as far as a person did so by the console."""
    return f"{RESERVED}answered-by:{run_id}"


def journal_key(run_id: str) -> str:
    """Its journal has the steps of a run; its value is how the run has ended, as long as that is kept."""
    return f"{RESERVED}journal:{run_id}"


def history_key(run_id: str) -> str:
    """Its journal has the long part of a run's history, where the steps are not kept."""
    return f"{RESERVED}history:{run_id}"


def open_prefix(agent_name: str) -> str:
    """What the keys begin with of the runs of an agent that are not finished."""
    return f"{RESERVED}open:{len(agent_name)}:{agent_name}:"


def open_key(agent_name: str, run_id: str) -> str:
    """It is there while a run is not finished. The owner that works on the run has claimed this key."""
    return open_prefix(agent_name) + run_id


def stuck_prefix(agent_name: str) -> str:
    """What the keys begin with of the runs of an agent that were set aside."""
    return f"{RESERVED}stuck:{len(agent_name)}:{agent_name}:"


def stuck_key(agent_name: str, run_id: str) -> str:
    """It is there while a run is set aside, because it has ended its process too often."""
    return stuck_prefix(agent_name) + run_id


def former_lease_key(run_id: str) -> str:
    """The lease by which the first version of the stores holds a run."""
    return f"{RESERVED}run:{run_id}"


def session_key(session_id: str) -> str:
    """Its journal has the turns of a session. The owner that works on a turn has claimed this key."""
    return f"{RESERVED}session:{session_id}"


def preempt_key(session_id: str) -> str:
    """It is there while another process wants the turn of that session at once. Its value is the owner that is asked for it."""
    return PREEMPT + session_id


def stop_prefix(owner: str) -> str:
    """What the keys begin with of the requests that an owner's runs are to end."""
    return f"{RESERVED}stop:{len(owner)}:{owner}:"


def stop_key(owner: str, name: str) -> str:
    """It is there while another process wants a run of that owner to end."""
    return stop_prefix(owner) + name


def cluster_prefix(name: str) -> str:
    """What the keys begin with of what the hosts of a cluster keep together."""
    return f"{RESERVED}cluster:{len(name)}:{name}:"


def cluster_host_key(name: str, host: str) -> str:
    """The incarnation of a host. The owner under which that works has claimed this key."""
    return f"{cluster_prefix(name)}host:{host}"
