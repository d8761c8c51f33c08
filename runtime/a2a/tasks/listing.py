"""The tasks of an owner, page by page.

The task whose status changed last comes first, and a token marks the end of a page. One query of
the index keys finds a page; only its tasks are read.
"""

from __future__ import annotations

import binascii
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import TYPE_CHECKING, Final

from a2a.types import a2a_pb2 as pb
from a2a.utils.errors import InvalidParamsError

from .keys import IndexEntry, short_hash

if TYPE_CHECKING:
    from .keys import Owner
    from .service import TaskService

__all__ = ["apply_history_length", "list_tasks"]

_PAGE: Final = 50
_DIGITS: Final = 20


async def list_tasks(
    service: TaskService, params: pb.ListTasksRequest, owner: Owner
) -> pb.ListTasksResponse:
    """Return one page."""
    prefix = service.keys.index_prefix(owner)
    entries = [service.keys.entry(key) for key in await service.access.keys(prefix)]
    chosen = [entry for entry in entries if _is_wanted(entry, params)]
    first = _after(chosen, params.page_token) if params.page_token else 0
    size = params.page_size or _PAGE
    page = chosen[first : first + size]
    response = pb.ListTasksResponse(page_size=size, total_size=len(chosen))
    last, length = None, 0
    for entry in page:
        log = await service.load(entry.task_id)
        if log is None or log.kept.owner != owner:  # it was removed in the meantime
            continue
        task = apply_history_length(log.task, params)
        if not params.include_artifacts:
            task.ClearField("artifacts")
        length += task.ByteSize()
        if response.tasks and length > service.limits.page:
            break
        response.tasks.append(task)
        last = entry
    else:
        last = page[-1] if page else None
    if last is not None and last is not chosen[-1]:
        response.next_page_token = _token(last)
    return response


def _is_wanted(entry: IndexEntry, params: pb.ListTasksRequest) -> bool:
    if params.context_id and entry.context != short_hash(params.context_id):
        return False
    if params.status and entry.state != params.status:
        return False
    return (
        not params.HasField("status_timestamp_after")
        or entry.time >= params.status_timestamp_after.ToNanoseconds()
    )


def _place(entry: IndexEntry) -> tuple[str, str]:
    return entry.rank, entry.task_id


def _token(entry: IndexEntry) -> str:
    return urlsafe_b64encode("/".join(_place(entry)).encode()).decode().rstrip("=")


def _after(entries: list[IndexEntry], token: str) -> int:
    """Return the start of the page that the token names.

    The token names a position in the order, not a task: it stays valid when tasks change or are
    removed.
    """
    try:
        rank, slash, task_id = (
            urlsafe_b64decode(token + "=" * (-len(token) % 4)).decode().partition("/")
        )
    except (binascii.Error, ValueError) as error:
        raise InvalidParamsError("pageToken must be a token that this server returned.") from error
    if not slash or len(rank) != _DIGITS or not rank.isdigit():
        raise InvalidParamsError("pageToken must be a token that this server returned.")
    return next(
        (index for index, entry in enumerate(entries) if _place(entry) > (rank, task_id)),
        len(entries),
    )


def apply_history_length(
    task: pb.Task, params: pb.ListTasksRequest | pb.GetTaskRequest | pb.SendMessageConfiguration
) -> pb.Task:
    """Truncate the history of a task to the requested length.

    This changes the task itself, which belongs to the caller.
    """
    if params.HasField("history_length") and len(task.history) > params.history_length:
        del task.history[: len(task.history) - params.history_length]
    return task
