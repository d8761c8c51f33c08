"""Requests for runs as bytes: the messages and options with which a host starts a run.

Values that cannot be sent are refused when they are passed. Bytes never cause a call by name here:
the host decides about names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from ..agent.options import (
    ModelOptions,
    Options,
    OptionsLike,
    ToolOptions,
    as_options,
    as_tool_options,
    plain_options,
    restored_options,
)
from ..codec.packing import pack, unpack
from ..data.agent_input import as_messages
from ..data.chat import Message, new_id
from ..data.checkpoint_id import CheckpointId
from ..errors import CheckpointError, UsageError
from ..sessions.session_policy import KeepLast, SessionPolicyLike, keep_last
from .names import check_name, load_allowed

if TYPE_CHECKING:
    from ..data.interrupt import InterruptContext
    from ..run.run_options import TurnOptions

__all__ = [
    "pack_resume",
    "pack_run",
    "pack_verdict",
    "packed_policy",
    "policy_of",
    "read_checkpoint_id",
    "read_options",
    "read_run",
]

_KINDS: Final = (Options, ToolOptions, ModelOptions)


def pack_run(
    what: str,
    messages: str | Message | Sequence[Message],
    given: TurnOptions,
    session: Mapping[str, Any] | None = None,
) -> bytes:
    """Pack a new run. Raise `UsageError` that names an option that cannot be sent."""
    said: dict[str, Any] = dict(given)
    timeout = said.get("timeout")
    if timeout is not None and not timeout > 0:
        msg = (
            f"{what}: timeout must be a number of seconds above 0, or None for no limit, got "
            f"{timeout}."
        )
        raise UsageError(msg)
    said["options"] = _packed_options(what, as_options(said.get("options")))
    said["messages"] = list(as_messages(messages))
    for name in ("session_values", "labels"):
        if said.get(name) is not None:
            said[name] = dict(said[name])
    if session is not None:
        said["session"] = dict(session)
    return _packed(what, said)


def pack_resume(
    what: str,
    checkpoint_id: str,
    targets: Mapping[str, object] | None,
    data: object,
    tool_options: OptionsLike,
    given: Mapping[str, Any],
) -> bytes:
    """Pack an answer to a run, which continues.

    It has its own id, under which it may be sent again.
    """
    options = _packed_options(
        what, (*as_tool_options(tool_options), *as_options(given.get("options")))
    )
    said = {
        **given,
        "checkpoint_id": checkpoint_id,
        "targets": None if targets is None else dict(targets),
        "data": data,
        "options": options,
    }
    if isinstance(checkpoint_id, CheckpointId):
        said["checkpoint_id"], said["save"] = (
            str(checkpoint_id),
            [checkpoint_id.run, checkpoint_id.save],
        )
    return _packed(what, {**said, "answer_id": said.get("answer_id") or new_id()})


def pack_verdict(
    what: str,
    interrupt: InterruptContext | str,
    answer: object,
    answer_id: str | None,
    *,
    approves: bool,
) -> bytes:
    """Pack an approval (with changed arguments) or a denial (with its reason) of one call."""
    return _packed(
        what, {"verdict": [interrupt, approves, answer], "answer_id": answer_id or new_id()}
    )


def read_checkpoint_id(said: Mapping[str, Any]) -> str:
    """Return the id of the answered checkpoint, bound to one save if it was bound when packed."""
    name: str = said["checkpoint_id"]
    return CheckpointId(name, *said["save"]) if "save" in said else name


def _packed_options(what: str, options: Sequence[Options]) -> list[Any]:
    for one in options:
        if type(one) not in _KINDS:
            msg = (
                f"{what}: options must be Options, ToolOptions or ModelOptions, got {one!r}: "
                "instances of other classes cannot be sent to another machine."
            )
            raise UsageError(msg)
        try:
            pack(one.values)
        except CheckpointError as error:
            msg = f"{what}(options={one!r}): {error}"
            raise UsageError(msg) from error
    return [list(row) for row in plain_options(tuple(options))]


def _packed(what: str, said: dict[str, Any]) -> bytes:
    try:
        return pack({name: value for name, value in said.items() if value is not None})
    except CheckpointError as error:
        msg = (
            f"{what}(...): the arguments must be values that can be sent to another process. "
            f"{error}"
        )
        raise UsageError(msg) from error


def read_run(body: bytes) -> dict[str, Any]:
    """Unpack a request. Raise `CheckpointError`."""
    said = unpack(body)
    if not isinstance(said, dict):
        raise CheckpointError(
            "the request for a run is damaged. Check that the client and all hosts run the same "
            "version of offbook."
        )
    return said


def read_options(said: Mapping[str, Any], *names: str) -> Any:
    """Return the options of a run that have these names, for the Runner."""
    found: dict[str, Any] = {name: said[name] for name in names if name in said}
    if said.get("options"):
        found["options"] = restored_options(said["options"])
    return found


def packed_policy(policy: SessionPolicyLike | str) -> Any:
    """Return a session's policy in the packed form."""
    if policy is None or isinstance(policy, str):
        return None if policy is None else check_name(policy, "session(policy=...)")
    if isinstance(policy, KeepLast):
        return policy.count
    msg = (
        f"session(policy={policy!r}): policy must be keep_last(n) or the name of a function, "
        "such as 'module:function', because it is sent to another machine."
    )
    raise UsageError(msg)


def policy_of(said: Any, allow: Sequence[str]) -> SessionPolicyLike:
    """Return the policy for its packed form."""
    if said is None:
        return None
    if isinstance(said, int):
        return keep_last(said)
    found: SessionPolicyLike = load_allowed(said, allow, "session(policy=...)")
    return found
