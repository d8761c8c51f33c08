"""The states of a task: which may follow which, over all pairs; and what is kept when one does."""

import itertools

import pytest
from a2a.types import a2a_pb2 as pb

from offbook.runtime.a2a.tasks.checks import TERMINAL, may_follow
from offbook.runtime.a2a.tasks.keys import Owner, TaskKeys
from offbook.runtime.a2a.tasks.task_log import StoredTask, TaskLog, read_task

STATES = (
    "SUBMITTED",
    "WORKING",
    "INPUT_REQUIRED",
    "AUTH_REQUIRED",
    "COMPLETED",
    "FAILED",
    "CANCELED",
    "REJECTED",
    "UNSPECIFIED",
)
ENDS = {"COMPLETED", "FAILED", "CANCELED", "REJECTED"}
PAUSES = {"INPUT_REQUIRED", "AUTH_REQUIRED"}
ALLOWED = {
    "SUBMITTED": {"WORKING"} | PAUSES | ENDS,
    "WORKING": {"WORKING"} | PAUSES | ENDS,
    "INPUT_REQUIRED": {"WORKING", "CANCELED", "FAILED", "REJECTED"},
    "AUTH_REQUIRED": {"WORKING", "CANCELED", "FAILED", "REJECTED"},
}


def number(name):
    return pb.TaskState.Value(f"TASK_STATE_{name}")


def log_in(state):
    task = pb.Task(id="t", context_id="c", status=pb.TaskStatus(state=number(state)))
    return TaskLog(TaskKeys("agent"), task, StoredTask(Owner("tenant", "subject")))


@pytest.mark.parametrize(("state", "following"), list(itertools.product(STATES, STATES)))
def test_which_state_may_follow_which(state, following):
    if state == "UNSPECIFIED":
        return
    allowed = following in ALLOWED.get(state, ())
    assert may_follow(number(state), number(following)) is allowed
    log = log_in(state)
    if allowed:
        log.status(number(following), 1.0)
        assert log.state == number(following)
    else:
        with pytest.raises(ValueError, match="cannot change from"):
            log.status(number(following), 1.0)
        assert log.state == number(state)


def test_there_is_no_way_out_of_a_terminal_state():
    assert {pb.TaskState.Name(state).removeprefix("TASK_STATE_") for state in TERMINAL} == ENDS
    assert not any(
        may_follow(state, number(following)) for state in TERMINAL for following in STATES
    )


def test_each_change_has_a_number_and_metadata_does_not_stick():
    from google.protobuf.struct_pb2 import Struct

    log = log_in("SUBMITTED")
    metadata = Struct()
    metadata.update({"step": 1})
    first = log.status(number("WORKING"), 1.0, metadata=metadata)
    log.artifact(pb.Artifact(artifact_id="a", parts=[pb.Part(text="x")]), append=False, last=True)
    log.status(number("COMPLETED"), 2.0)
    assert log.number == 3
    assert first.metadata["step"] == 1
    assert not log.task.HasField("metadata")
    append = log.writes()[0]
    assert (len(append.records), append.after) == (3, 0)


def test_time_never_goes_back():
    log = log_in("SUBMITTED")
    log.status(number("WORKING"), 100.0)
    log.status(number("COMPLETED"), 50.0)
    assert log.task.status.timestamp.ToNanoseconds() == 100 * 10**9


def test_a_task_is_read_as_it_was_written():
    log = log_in("SUBMITTED")
    log.status(number("WORKING"), 1.5)
    log.status(
        number("INPUT_REQUIRED"),
        2.5,
        pb.Message(message_id="q", role=pb.ROLE_AGENT, parts=[pb.Part(text="?")]),
    )
    log.kept.run_id, log.kept.checkpoint_id, log.kept.pending = "run", "checkpoint", {"i": True}
    value = next(
        write.value
        for write in log.writes()
        if write.key == TaskKeys("agent").task("t") and hasattr(write, "value")
    )
    again = read_task(TaskKeys("agent"), value)
    assert again.task == log.task
    assert again.kept == log.kept
    assert (again.number, again.at) == (log.number, log.at)


def test_the_question_becomes_history_when_it_is_answered():
    log = log_in("WORKING")
    log.status(
        number("INPUT_REQUIRED"),
        1.0,
        pb.Message(message_id="q", role=pb.ROLE_AGENT, parts=[pb.Part(text="?")]),
    )
    log.said(pb.Message(message_id="a", role=pb.ROLE_USER, parts=[pb.Part(text="!")]))
    log.status(number("WORKING"), 2.0)
    assert [said.message_id for said in log.task.history] == ["q", "a"]
    assert not log.task.status.HasField("message")


def test_a_change_that_comes_while_others_are_written_is_in_the_next_write():
    log = log_in("SUBMITTED")
    log.status(pb.TASK_STATE_WORKING, 1)
    (first, *_) = log.writes()
    log.status(pb.TASK_STATE_COMPLETED, 2)
    log.saved()
    assert log.has_unsaved
    (second, *others) = log.writes()
    assert (len(first.records), first.after) == (1, 0)
    assert (len(second.records), second.after) == (1, 1)
    assert {type(write).__name__ for write in others} == {"Put", "Remove"}, "its index moves"
    log.saved()
    assert not log.has_unsaved
