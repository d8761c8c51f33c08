"""The lifecycle of an actor: start, failure, restart and stop.

These procedures move a cell from phase to phase, and define the order of its hooks. All of them run
on the system's loop; a procedure that must wait runs in the cell's task. The supervisor decides
what happens to a failed actor.

* Start: `on_start`. If it fails, neither `on_failure` nor `on_stop` is called.
* Failure: the supervisor decides. Unless it resumes, the children are stopped, then `on_failure` is
  called on the failed instance.
* Restart: after that, the backoff; then a new instance, and its `on_start`. If one of these two
  fails, that is a failure like any other.
* Stop: queued messages are answered, the current handler ends, the children are stopped, then
  `on_stop` is called.

Every failure is logged once, here.
"""

from __future__ import annotations

import asyncio
from functools import partial
from time import perf_counter
from types import CoroutineType
from typing import TYPE_CHECKING, Any, Final

from ..errors import kept_from_logs
from ..log import loggers
from .extras import table
from .messages import ChildEscalated, ChildFailed, Ending, Failed, Stopped, StopRequest
from .phase import OPEN, RESTARTING, STARTING, STOPPED, STOPPING, SUSPENDED
from .steps import StepResult, Steps
from .supervision import Directive, Escalate, Restart, RestartBudget, Resume, Stop

if TYPE_CHECKING:
    from .cell import Cell

__all__ = [
    "abandon",
    "begin_stop",
    "childless",
    "decide",
    "fail",
    "request_stop",
    "start",
    "started",
    "stop",
    "stop_when_childless",
]

_STOPPED: Final = Stopped()

# The number of children to stop before other work on the loop gets its turn.
_CHUNK = 256

# After a failure in one of these there is no instance that could continue.
_UNSTARTED = ("__init__", "on_start")


def start(cell: Cell) -> bool:
    """Call `on_start`.

    Returns True if the actor is open now. Otherwise `on_start` is still running, or has failed.
    """
    assert cell.actor is not None
    began = cell.system.monitor.begin()
    try:
        result = cell.context.run(cell.actor.on_start)
    except BaseException as error:  # noqa: BLE001 -- goes to the supervisor
        fail(cell, error, "on_start")
        return False
    if type(result) is CoroutineType:
        # Not inside our own coroutine: if the task were cancelled before its first step, that
        # coroutine would never run.
        cell.handling = "on_start"
        done = partial(_on_start_ended, cell)
        cell.run_task(
            Steps(result, cell.blocked_for("on_start"), done, begin=cell.system.monitor.begin),
            STARTING,
        )
        return False
    cell.blocked_for("on_start")(perf_counter() - began)
    cell.open()
    return True


def _on_start_ended(cell: Cell, outcome: StepResult) -> None:
    started(cell, outcome.error, "on_start")


def started(cell: Cell, error: BaseException | None, during: str) -> None:
    """Continue after the creation of an instance or its `on_start`, in the task's last step."""
    cell.handling = None
    cell.end_task()
    cut_short, cell.cancelling = cell.cancelling, False
    if error is None:
        cell.reopen()
    elif cut_short and isinstance(error, asyncio.CancelledError):
        _close(cell)
        stop(cell, hook=False)
    else:
        fail(cell, error, during)


# --- failure ---


def fail(cell: Cell, error: BaseException, during: str) -> None:
    """Let the supervisor decide about a failed actor."""
    if cell.phase in (STOPPING, STOPPED):
        return  # an escalation that came too late
    if cell.closing:
        _log(cell, error, during, "it was about to stop, and does")
        stop(cell, error, hook=during not in _UNSTARTED)
        return
    cell.phase = SUSPENDED
    cell.failure = (error, during)
    cell.system.running[cell] = None
    cell.leave()
    decide(cell, error, during)


def decide(cell: Cell, error: BaseException, during: str) -> None:
    """Let the parent decide if it overrides `on_child_failure`; otherwise apply the spawn rule."""
    if cell.phase is STOPPED:
        return
    parent = cell.parent
    if parent is None or not parent.actor_class.__actor_traits__.decides:
        apply(cell, cell.supervision or Stop(), error, during)
    elif parent.closing or parent.actor is None:
        apply(cell, Stop(), error, during)
    else:
        # Not immediately: the parent's own handler may be on the stack, waiting for this very
        # child.
        cell.system.loop.call_soon(parent.decide_on, ChildFailed(cell, error, during))


def decided(request: ChildFailed, directive: Any, problem: BaseException | None) -> None:
    """Apply the decision of the parent.

    If `on_child_failure` itself raised, the parent fails.
    """
    child, parent = request.child, request.child.parent
    assert parent is not None
    if isinstance(problem, asyncio.CancelledError) and child.system.closing:
        problem, directive = None, Stop()  # the end of the system cancelled it
    if problem is None and not isinstance(directive, Directive):
        problem = TypeError(
            f"{parent.actor_class.__name__}.on_child_failure() must return Restart(), Resume(), "
            f"Stop() or Escalate() of offbook.runtime, got {directive!r}."
        )
    if problem is not None:
        apply(child, Stop(), request.error, request.during)
        if parent.is_open:
            parent.post_control(ChildEscalated(problem, "on_child_failure"))
        else:
            _log(parent, problem, "on_child_failure", "it was about to stop, and does")
    else:
        apply(child, directive, request.error, request.during)


def apply(cell: Cell, directive: Directive, error: BaseException, during: str) -> None:
    """Carry out the supervisor's decision."""
    if during != "on_stop":
        if cell.failure is None or cell.failure[0] is not error:
            return  # it was stopped before its supervisor decided
        cell.failure = None
    if isinstance(directive, Escalate) and cell.parent is not None:
        _log(cell, error, during, "its parent fails with it")
        cell.parent.post_control(ChildEscalated(error, f"its child {cell.name}"))
    elif during == "on_stop":
        _log(cell, error, during, "it has stopped all the same")
    elif cell.closing:
        _log(cell, error, during, "it was about to stop, and does")
    elif isinstance(directive, Resume) and during not in _UNSTARTED:
        _log(cell, error, during, "it goes on with the next message")
        cell.system.running.pop(cell, None)
        cell.reopen()
        return
    elif isinstance(directive, Restart):
        cell.budget = cell.budget or RestartBudget()
        attempt = cell.budget.spend(directive, cell.system.clock.monotonic())
        if attempt is not None:
            delay = directive.backoff.delay(attempt)
            _log(
                cell,
                error,
                during,
                f"restart {attempt + 1} of {directive.max_restarts} in {delay:.3g} s",
            )
            cell.system.monitor.restarts += 1
            cell.run_task(_restart(cell, error, during, delay), RESTARTING)
            return
        _log(
            cell,
            error,
            during,
            f"it stops, after {directive.max_restarts} restarts within {directive.within:g} s",
        )
    else:
        _log(cell, error, during, "it stops")
    if during == "on_stop":
        cell.run_task(_end(cell, Failed(error)), STOPPING)
    else:
        _close(cell)
        stop(cell, error, hook=during not in _UNSTARTED)


def _log(cell: Cell, error: BaseException, during: str, what: str) -> None:
    if isinstance(error, asyncio.CancelledError) and (cell.system.closing or _is_ending(cell)):
        loggers.actor.debug(
            "%s was cancelled in %s, by the end of its event loop.", cell.path, during
        )
        return
    kept = kept_from_logs(error)
    loggers.actor.error(
        "%s failed in %s: %s: %s; %s.",
        cell.path,
        during,
        type(error).__name__,
        error if kept is None else kept,
        what,
        exc_info=error if kept is None else None,
    )


def _is_ending(cell: Cell) -> bool:
    """Return True if the current loop is ending.

    `asyncio.run` cancels all tasks when the main task is done, and only tasks of actors remain.
    Then it closes its generators, each in a separate task.
    """
    own = {*(other.task for other in cell.system.running), *cell.system.tasks}
    return all(
        other.cancelling() or other in own or _closes_generator(other)
        for other in asyncio.all_tasks(cell.system.loop)
    )


def _closes_generator(task: asyncio.Task[object]) -> bool:
    # A type that has no public name.
    return type(task.get_coro()).__name__ == "async_generator_athrow"


async def _restart(cell: Cell, error: BaseException, during: str, delay: float) -> None:
    if cell.system.extras:
        table.restart(cell)
    await _stop_children(cell)
    cell.escalated = None  # came from one of the children
    if during not in _UNSTARTED:
        await _call_on_failure(cell, error)
    cell.actor = None
    cell.attend()  # the hook may have stopped the actor
    if not cell.closing and delay > 0:
        cell.pause = cell.system.loop.create_future()
        timer = cell.system.clock.call_later(delay, wake, cell)
        try:
            await cell.pause
        finally:
            timer.cancel()
            cell.pause = None
    cell.attend()
    if cell.closing:
        # There is no instance any more, and `on_failure` was called on the failed one.
        cell.end_task()
        cell.run_task(_end(cell, _STOPPED), STOPPING)
        return
    cell.phase = STARTING
    failure = await cell.rebuild()
    stage = "__init__"
    if failure is None:
        stage = "on_start"
        failure = await cell.call("on_start")
    started(cell, failure, stage)


def wake(cell: Cell) -> None:
    """End the wait before a restart."""
    if cell.pause is not None and not cell.pause.done():
        cell.pause.set_result(None)


async def _call_on_failure(cell: Cell, error: BaseException) -> None:
    problem = await cell.call("on_failure", type(error), error, error.__traceback__)
    if problem is not None:
        loggers.actor.error(
            "%s: on_failure raised, too: %s: %s.",
            cell.path,
            type(problem).__name__,
            problem,
            exc_info=problem,
        )


# --- stop ---


def begin_stop(cell: Cell, *, hook: bool = True) -> None:
    """Stop the actor, before any queued message.

    `hook=False` is only for this library's own actors that are idle and have no children.
    """
    if cell.closing:
        return
    if cell.phase is OPEN and _end_simply(cell, hook=hook):
        return
    _close(cell)
    if cell.phase is OPEN or (cell.phase is STARTING and cell.task is None):
        stop(cell, hook=cell.phase is OPEN)
    elif cell.phase is RESTARTING:
        wake(cell)
    elif cell.failure is not None:
        apply(cell, Stop(), *cell.failure)
    elif cell.system.closing:
        cell.interrupt()


def _end_simply(cell: Cell, *, hook: bool) -> bool:
    """End an actor without `on_stop`, children or thread (most actors) in a third of the time.

    Returns False for all others.
    """
    if (hook and cell.actor_class.__actor_traits__.has_on_stop) or (
        cell.owns_thread and cell.holds_thread()
    ):
        return False
    with cell.system.lock:
        if cell.children:
            return False
        cell.closing = True  # from now on no other thread can add a child
    if cell.listed:
        cell.system.leaving(cell)
    cell.end(_STOPPED)
    return True


def abandon(cell: Cell) -> None:
    """Stop the children of an `__init__` that raised, or whose parent was closed meanwhile."""
    with cell.system.lock:
        cell.parent = None
        cell.system.roots[cell] = None  # so that the system waits for it
    begin_stop(cell)


def request_stop(cell: Cell) -> None:
    """Stop an actor: immediately if it is idle, otherwise through its control lane."""
    if cell.is_idle():
        begin_stop(cell)
    else:
        cell.post_control(StopRequest(), seal=True)


def _close(cell: Cell) -> None:
    with cell.system.lock:
        cell.closing = True
        box = cell.box
    cell.system.leaving(cell)
    if box is not None:
        cell.resolve_left(box.close_work())


def stop(cell: Cell, error: BaseException | None = None, *, hook: bool = True) -> None:
    """Stop an actor that is not running anything.

    Its children are stopped, `on_stop` or `on_failure` is called if there is an instance, and the
    actor ends.
    """
    if cell.phase is STOPPED:
        return
    traits = cell.actor_class.__actor_traits__
    has_hook = hook and (traits.has_on_stop if error is None else traits.has_on_failure)
    if not cell.children and not has_hook and not cell.holds_thread():
        # Most actors. Without a task, a large number of them stop quickly.
        cell.system.running.pop(cell, None)
        cell.end(_STOPPED if error is None else Failed(error))
        return
    cell.run_task(_stop(cell, error, hook=has_hook), STOPPING)


async def _stop(cell: Cell, error: BaseException | None, *, hook: bool) -> None:
    await _stop_children(cell)
    if hook and cell.actor is not None:
        if error is not None:
            await _call_on_failure(cell, error)
        elif (problem := await cell.call("on_stop")) is not None:
            cell.end_task()
            decide(cell, problem, "on_stop")
            return
    await _end(cell, _STOPPED if error is None else Failed(error))


async def _end(cell: Cell, ending: Ending) -> None:
    await cell.release()
    cell.end_task()
    cell.end(ending)


async def _stop_children(cell: Cell) -> None:
    with cell.system.lock:
        children = list(cell.children or ())
    if not children:
        return
    cell.children_gone = gone = cell.system.loop.create_future()
    for index, child in enumerate(children, start=1):
        request_stop(child)
        if index % _CHUNK == 0:
            await asyncio.sleep(0)
    if cell.children:
        await gone
    cell.children_gone = None


def childless(parent: Cell) -> None:
    """Continue after the last child has ended."""
    if parent.children_gone is not None and not parent.children_gone.done():
        parent.children_gone.set_result(None)
    elif parent.until_childless:
        begin_stop(parent)


def stop_when_childless(cell: Cell) -> None:
    """Stop an actor when all its children have ended by themselves: now, if it has none."""
    cell.until_childless = True
    if not cell.children:
        begin_stop(cell)
