"""What a session is given and keeps.

Owns: the reading of a session for a run, and the writing of what the run was asked and what came of it. It must never write an item twice.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Sequence
from typing import Any

from ....runtime.maybe_await import maybe_await
from ..exceptions import UserError
from ..items.helpers import ItemHelpers
from ..items.history import as_input, complete, deduplicated, fingerprint, run_items_to_input, without_reasoning_ids
from ..memory.session import is_openai_conversation, sanitized_for_conversation
from ..memory.session_settings import SessionSettings
from .live import LiveRun

__all__ = ["check_session", "prepared_input", "rewind", "save_input", "save_items", "session_call"]


def check_session(session: Any, *, conversation_id: str | None, previous_response_id: str | None, auto: bool) -> None:
    """Raise, if both a session and the provider would keep the conversation."""
    if session is not None and (conversation_id is not None or previous_response_id is not None or auto):
        msg = (
            "Session persistence cannot be combined with conversation_id, previous_response_id, or auto_previous_response_id: both would keep the same "
            "conversation. Leave one of them out."
        )
        raise UserError(msg)


async def session_call(run_context: Any, method: Any, *args: Any, **named: Any) -> Any:
    """Call a method of a session, with the context of the run if it takes one."""
    try:
        takes = "wrapper" in inspect.signature(method).parameters
    except (TypeError, ValueError):
        takes = False
    return await maybe_await(method(*args, **named, wrapper=run_context) if takes else method(*args, **named))


async def prepared_input(run: LiveRun, asked: Any) -> tuple[Any, list[Any]]:
    """What the run begins with: what the session holds, and what is asked now; and what of it the session is to be given."""
    session = run.session
    if session is None:
        return asked, []
    settings = (getattr(session, "session_settings", None) or SessionSettings()).resolve(run.config.session_settings)
    named = {} if settings.limit is None else {"limit": settings.limit}
    history = [as_input(item) for item in await session_call(run.context, session.get_items, **named)]
    if run.state.omits_reasoning_ids and not is_openai_conversation(session):
        history = without_reasoning_ids(history)
    new = [as_input(item) for item in ItemHelpers.input_to_new_input_list(asked)]
    callback = run.config.session_input_callback
    if callback is None:
        old = set(range(len(history)))
        whole = complete([*history, *new], only=old, outputs_of=set(old) if settings.limit is not None else None)
        return deduplicated(whole), new
    if not callable(callback):
        msg = f"Invalid `session_input_callback` value: {callback}. Choose between `None` or a custom callable function."
        raise UserError(msg)
    before, after = copy.deepcopy(history), copy.deepcopy(new)
    known = {id(item) for item in before}, {id(item) for item in after}
    before_texts, kept = [fingerprint(item) for item in before], (list(before), list(after))
    after_texts = [fingerprint(item) for item in after]
    combined = await maybe_await(callback(before, after))
    if not isinstance(combined, list):
        msg = "Session input callback must return a list of input items."
        raise UserError(msg)
    del kept  # the ids above were those of these objects until now
    appended, places = _new_ones(combined, known, before_texts, after_texts)
    return deduplicated(complete([as_input(item) for item in combined], only=places)), [as_input(item) for item in appended]


def _new_ones(combined: list[Any], known: tuple[set[int], set[int]], before: list[str], after: list[str]) -> tuple[list[Any], set[int]]:
    """Which of the items that a callback has put together are new, and the places of the others."""
    appended, places = [], set()
    for index, item in enumerate(combined):
        said = fingerprint(item)
        if id(item) in known[1]:
            if said in after:
                after.remove(said)
            appended.append(item)
        elif id(item) in known[0] or said in before:
            if said in before:
                before.remove(said)
            places.add(index)
        else:
            if said in after:
                after.remove(said)
            appended.append(item)
    return appended, places


async def save_input(run: LiveRun) -> None:
    """Give the session what the run was asked."""
    if run.session is not None and run.new_input:
        items, run.new_input = run.new_input, []
        await _add(run, deduplicated(items))


async def save_items(run: LiveRun, items: Sequence[Any], response_id: str | None = None) -> None:
    """Give the session what a turn has produced, but for what it has already."""
    if run.session is None:
        return
    state = run.state
    waiting = list(items)[state.persisted_count :] if state.persisted_count < len(items) else []
    found = run_items_to_input(waiting, without_ids=state.omits_reasoning_ids and not is_openai_conversation(run.session))
    state.persisted_count += len(waiting)
    if found:
        await _add(run, deduplicated([as_input(item) for item in found]))
    if response_id and hasattr(run.session, "run_compaction"):
        await run.session.run_compaction({"response_id": response_id})


async def _add(run: LiveRun, items: list[Any]) -> None:
    if is_openai_conversation(run.session):
        items = sanitized_for_conversation(items)
    if items:
        await session_call(run.context, run.session.add_items, items)


async def rewind(run: LiveRun, items: Sequence[Any]) -> None:
    """Take back what the session was given last, because the request is made again."""
    if run.session is None:
        return
    for _ in items:
        await session_call(run.context, run.session.pop_item)
