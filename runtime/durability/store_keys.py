"""The keys of runs and sessions in a store.

None of them may ever change: stores outlive the versions of this library.
"""

from __future__ import annotations

from typing import Final

__all__ = [
    "PREEMPT",
    "RESERVED",
    "TASK",
    "answered_by_key",
    "answered_key",
    "answered_prefix",
    "answered_task_key",
    "arrivals_key",
    "cluster_host_key",
    "cluster_prefix",
    "cluster_underlay_key",
    "deadline_key",
    "history_key",
    "inbox_key",
    "inbox_prefix",
    "journal_key",
    "occurrence_key",
    "open_key",
    "open_prefix",
    "post_ids_key",
    "post_key",
    "posted_key",
    "preempt_key",
    "reminder_key",
    "schedule_key",
    "schedule_prefix",
    "session_key",
    "session_of",
    "stop_key",
    "stop_prefix",
    "stuck_key",
    "stuck_of",
    "stuck_prefix",
    "task_key",
]

RESERVED: Final = "offbook:"
"""The prefix of all keys except checkpoints. No user's id may start with it."""

PREEMPT: Final = f"{RESERVED}preempt:"

TASK: Final = "task-"
"""The prefix of the ids of background tasks."""


def answered_key(run_id: str, number: int) -> str:
    """Return the key that exists once that save of the run was answered.

    Another run may have the same checkpoint id some day.
    """
    return f"{RESERVED}answered:{run_id}@{number}"


def answered_prefix(run_id: str) -> str:
    """Return the prefix of the keys of a run's answers: the rest is an answer's id.

    Each key exists once that answer was accepted.
    """
    return f"{RESERVED}answered:{run_id}@="


def answered_by_key(run_id: str) -> str:
    """Return the key whose value names those who answered a run's interrupts in the console."""
    return f"{RESERVED}answered-by:{run_id}"


def journal_key(run_id: str) -> str:
    """Return the key whose journal has the steps of a run, and whose value is its result.

    The result is there as long as it is retained.
    """
    return f"{RESERVED}journal:{run_id}"


def history_key(run_id: str) -> str:
    """Return the key whose journal has the long history of a run without recorded steps."""
    return f"{RESERVED}history:{run_id}"


def open_prefix(agent_name: str) -> str:
    """Return the key prefix of an agent's unfinished runs."""
    return f"{RESERVED}open:{len(agent_name)}:{agent_name}:"


def open_key(agent_name: str, run_id: str) -> str:
    """Return the key that the owner that works on a run has claimed.

    In a store without rows of runs, it has a value while the run is unfinished.
    """
    return open_prefix(agent_name) + run_id


def stuck_prefix(agent_name: str) -> str:
    """Return the key prefix of an agent's stuck runs, in a store without rows of runs."""
    return f"{RESERVED}stuck:{len(agent_name)}:{agent_name}:"


def stuck_key(agent_name: str, run_id: str) -> str:
    """Return the key that exists while a run is stuck, in a store without rows of runs."""
    return stuck_prefix(agent_name) + run_id


def stuck_of(claim: str) -> str:
    """Return that key for a run whose owner claims `claim`."""
    return f"{RESERVED}stuck:{claim.removeprefix(f'{RESERVED}open:')}"


def session_key(session_id: str) -> str:
    """Return the key whose journal has the turns of a session.

    The owner that works on a turn has claimed this key.
    """
    return f"{RESERVED}session:{session_id}"


def preempt_key(session_id: str) -> str:
    """Return the key that exists while another process wants the turn of that session at once.

    Its value is the owner that is asked for it.
    """
    return PREEMPT + session_id


def inbox_prefix(agent_name: str) -> str:
    """Return the key prefix of all posts to an agent's sessions that nobody has heard."""
    return f"{RESERVED}inbox:{len(agent_name)}:{agent_name}:"


def inbox_key(agent_name: str, session_id: str) -> str:
    """Return the key prefix of the posts to one session. The rest is the post's number."""
    return f"{inbox_prefix(agent_name)}{len(session_id)}:{session_id}:"


def post_key(agent_name: str, session_id: str, number: int) -> str:
    """Return the key of a post that nobody has heard. The keys are in the order of the numbers."""
    return f"{inbox_key(agent_name, session_id)}{number:016}"


def session_of(agent_name: str, key: str) -> str:
    """Return the session of a post's key."""
    length, _, rest = key.removeprefix(inbox_prefix(agent_name)).partition(":")
    return rest[: int(length)]


def posted_key(agent_name: str, session_id: str) -> str:
    """Return the key whose value is the number of the last post to that session."""
    return f"{RESERVED}posted:{len(agent_name)}:{agent_name}:{session_id}"


def post_ids_key(agent_name: str, session_id: str) -> str:
    """Return the key prefix of the ids that posts were sent with. The rest is the id."""
    return f"{RESERVED}post-id:{len(agent_name)}:{agent_name}:{len(session_id)}:{session_id}:"


def arrivals_key(agent_name: str) -> str:
    """Return the key that each post to a session of that agent changes."""
    return f"{RESERVED}arrivals:{agent_name}"


def deadline_key(run_id: str, number: int) -> str:
    """Return the id of the timer for the interrupts of that save of the run."""
    return f"{RESERVED}deadline:{run_id}@{number}"


def reminder_key(agent_name: str, session_id: str, number: int) -> str:
    """Return the id of the timer for a post that must not be heard before some time."""
    owner = f"{len(agent_name)}:{agent_name}:{len(session_id)}:{session_id}"
    return f"{RESERVED}reminder:{owner}:{number}"


def schedule_key(agent_name: str, name: str) -> str:
    """Return the key whose value is a schedule of an agent."""
    return f"{schedule_prefix(agent_name)}{name}"


def schedule_prefix(agent_name: str) -> str:
    """Return the key prefix of an agent's schedules. The rest is the name."""
    return f"{RESERVED}schedule:{len(agent_name)}:{agent_name}:"


def occurrence_key(agent_name: str, name: str, occurrence: str) -> str:
    """Return the id of the timer for the next occurrence of a schedule."""
    return f"{RESERVED}occurrence:{len(agent_name)}:{agent_name}:{len(name)}:{name}:{occurrence}"


def task_key(task_id: str) -> str:
    """Return the id of the timer of a background task whose outcome is not reported yet."""
    return f"{RESERVED}task:{task_id}"


def answered_task_key(task_id: str) -> str:
    """Return the key that exists once the call that started a task was answered with its result."""
    return f"{task_key(task_id)}:answered"


def stop_prefix(owner: str) -> str:
    """Return the key prefix of the requests to end runs of an owner."""
    return f"{RESERVED}stop:{len(owner)}:{owner}:"


def stop_key(owner: str, name: str) -> str:
    """Return the key that exists while another process wants a run of that owner to end."""
    return stop_prefix(owner) + name


def cluster_prefix(name: str) -> str:
    """Return the key prefix of the state that the hosts of a cluster share."""
    return f"{RESERVED}cluster:{len(name)}:{name}:"


def cluster_underlay_key(name: str) -> str:
    """Return the key whose value names the Ray cluster that the hosts of that name belong to."""
    return f"{cluster_prefix(name)}underlay"


def cluster_host_key(name: str, host: str) -> str:
    """Return the key of a host's incarnation. The host's owner has claimed this key."""
    return f"{cluster_prefix(name)}host:{host}"
