"""How an actor's life begins, fails, starts again and ends.

Owns: the procedures that move a cell from phase to phase, and the order in which hooks are called in them. All of it runs on the system's loop;
a procedure that has to wait runs in the cell's task. It never decides what becomes of a failed actor: that is its supervisor's.

* Start: `on_start`. If that fails, neither `on_failure` nor `on_stop` is called.
* Failure: the supervisor decides. Unless it resumes: children are stopped, then `on_failure` is called on the failed instance.
* Restart: after that, the backoff; then a fresh instance, and its `on_start`. If one of these two fails, that is a failure like any other.
* Stop: what is queued is answered, the handler under way ends, children are stopped, then `on_stop` is called.

Every failure is logged once, here.
"""

from __future__ import annotations

import asyncio
from time import perf_counter
from types import CoroutineType
from typing import TYPE_CHECKING, Any

from ..log import logger
from .messages import ChildEscalated, ChildFailed, Ending, Failed, Stopped, StopRequest
from .phase import OPEN, RESTARTING, STARTING, STOPPED, STOPPING, SUSPENDED
from .steps import Steps
from .supervision import Directive, Escalate, Restart, RestartBudget, Resume, Stop

if TYPE_CHECKING:
    from .cell import Cell

__all__ = ["abandon", "begin_stop", "child_ended", "decide", "fail", "request_stop", "start", "started", "stop", "stop_when_childless"]

# Children that are told to stop before the loop gets a look at everything else.
_CHUNK = 256

# Failures after which there is no instance that could go on.
_UNSTARTED = ("__init__", "on_start")


def start(cell: Cell) -> bool:
    """Call `on_start`. Returns whether the actor is open now; if not, it will be, or it has failed."""
    assert cell.actor is not None
    began = perf_counter()
    try:
        result = cell.context.run(cell.actor.on_start)
    except BaseException as error:  # noqa: BLE001 -- goes to the supervisor
        fail(cell, error, "on_start")
        return False
    if type(result) is CoroutineType:
        # Not in a coroutine of ours around it: that would not hear of being cancelled before its first step.
        cell.handling = "on_start"
        cell.run_task(Steps(result, cell.blocked_for("on_start"), lambda outcome: started(cell, outcome.error, "on_start")), STARTING)
        return False
    cell.blocked_for("on_start")(perf_counter() - began)
    cell.phase = OPEN
    return True


def started(cell: Cell, error: BaseException | None, during: str) -> None:
    """The making of an instance or its `on_start` has ended, in the cell's task."""
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
    """The actor has failed: let its supervisor decide."""
    if cell.phase in (STOPPING, STOPPED):
        return  # an escalation that came too late
    if cell.closing:
        _log(cell, error, during, "it was about to stop, and does")
        stop(cell, error, hook=during not in _UNSTARTED)
        return
    cell.phase = SUSPENDED
    cell.failure = (error, during)
    cell.system.running[cell] = None
    if cell.mailbox.leave():
        cell.system.dispatcher.attend(cell)
    decide(cell, error, during)


def decide(cell: Cell, error: BaseException, during: str) -> None:
    """Have the parent decide if it wants to, else go by what was said at the spawn; then do it."""
    if cell.phase is STOPPED:
        return
    parent = cell.parent
    if parent is None or not parent.actor_class._traits.decides:
        apply(cell, cell.supervision or Stop(), error, during)
    elif parent.closing or parent.actor is None:
        apply(cell, Stop(), error, during)
    else:
        # Not here and now: the parent's own handler may be on the stack, where it has asked this very child.
        cell.system.loop.call_soon(parent.decide_on, ChildFailed(cell, error, during))


def decided(request: ChildFailed, directive: Any, problem: BaseException | None) -> None:
    """The parent has decided; or `on_child_failure` itself has raised, which is a failure of the parent."""
    child, parent = request.child, request.child.parent
    assert parent is not None
    if isinstance(problem, asyncio.CancelledError) and child.system.closing:
        problem, directive = None, Stop()  # it was cut short
    if problem is None and not isinstance(directive, Directive):
        problem = TypeError(
            f"{parent.actor_class.__name__}.on_child_failure() returned {directive!r}; return Restart(), Resume(), Stop() or Escalate() of understudy.runtime."
        )
    if problem is not None:
        apply(child, Stop(), request.error, request.during)
        if parent.mailbox.is_open:
            parent.post_control(ChildEscalated(problem, "on_child_failure"))
        else:
            _log(parent, problem, "on_child_failure", "it was about to stop, and does")
    else:
        apply(child, directive, request.error, request.during)


def apply(cell: Cell, directive: Directive, error: BaseException, during: str) -> None:
    """Do what the supervisor has decided."""
    if during != "on_stop":
        if cell.failure is None or cell.failure[0] is not error:
            return  # it was stopped before its supervisor came to a decision
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
            _log(cell, error, during, f"restart {attempt + 1} of {directive.max_restarts} in {delay:.3g} s")
            cell.system.monitor.restarts += 1
            cell.run_task(_restart(cell, error, during, delay), RESTARTING)
            return
        _log(cell, error, during, f"it stops, after {directive.max_restarts} restarts within {directive.within:g} s")
    else:
        _log(cell, error, during, "it stops")
    if during == "on_stop":
        cell.run_task(_end(cell, Failed(error)), STOPPING)
    else:
        _close(cell)
        stop(cell, error, hook=during not in _UNSTARTED)


def _log(cell: Cell, error: BaseException, during: str, what: str) -> None:
    logger.error("%s failed in %s: %s: %s; %s.", cell.path, during, type(error).__name__, error, what, exc_info=error)


async def _restart(cell: Cell, error: BaseException, during: str, delay: float) -> None:
    await _stop_children(cell)
    cell.escalated = None  # it was one of theirs
    if during not in _UNSTARTED:
        await _call_on_failure(cell, error)
    cell.actor = None
    cell.attend()  # a hook may just have told the actor to stop
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
        # There is no instance any more, and the failed one has been told.
        cell.end_task()
        cell.run_task(_end(cell, Stopped()), STOPPING)
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
        logger.error("%s: on_failure raised, too: %s: %s.", cell.path, type(problem).__name__, problem, exc_info=problem)


# --- stop ---


def begin_stop(cell: Cell) -> None:
    """The actor is to stop, before whatever is queued."""
    if cell.closing:
        return
    if cell.phase is OPEN and _end_simply(cell):
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


def _end_simply(cell: Cell) -> bool:
    """End an actor that has no hook, no child and no thread: most actors, in a third of the time. Returns whether it was such a one."""
    if cell.actor_class._traits.has_on_stop or cell.holds_thread():
        return False
    with cell.system.lock:
        if cell.children:
            return False
        cell.closing = True  # no child slips in from another thread
    cell.system.leaving(cell)
    cell.end(Stopped())
    return True


def abandon(cell: Cell) -> None:
    """An actor whose instance could not be made, or that came too late: stop what its `__init__` has spawned."""
    with cell.system.lock:
        cell.parent = None
        cell.system.roots[cell] = None  # so that the system waits for it
    begin_stop(cell)


def request_stop(cell: Cell) -> None:
    """Have it stop. One that has nothing to do does so here and now."""
    if cell.is_idle():
        begin_stop(cell)
    else:
        cell.post_control(StopRequest(), seal=True)


def _close(cell: Cell) -> None:
    with cell.system.lock:
        cell.closing = True
    cell.system.leaving(cell)
    cell.resolve_left(cell.mailbox.close_work())


def stop(cell: Cell, error: BaseException | None = None, *, hook: bool = True) -> None:
    """Nothing is under way any more: stop the children, call `on_stop` or `on_failure` if there is an instance to call, and end."""
    if cell.phase is STOPPED:
        return
    traits = cell.actor_class._traits
    has_hook = hook and (traits.has_on_stop if error is None else traits.has_on_failure)
    if not cell.children and not has_hook and not cell.holds_thread():
        # Most actors, and the only way to stop very many of them in no time.
        cell.system.running.pop(cell, None)
        cell.end(Stopped() if error is None else Failed(error))
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
    await _end(cell, Stopped() if error is None else Failed(error))


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


def child_ended(parent: Cell, child: Cell) -> None:
    """A child is no more."""
    with parent.system.lock:
        if parent.children is not None:
            parent.children.pop(child, None)
    if parent.children:
        return
    if parent.children_gone is not None and not parent.children_gone.done():
        parent.children_gone.set_result(None)
    elif parent.until_childless:
        begin_stop(parent)


def stop_when_childless(cell: Cell) -> None:
    """Have an actor stop when its children have ended by themselves: now, if it has none."""
    cell.until_childless = True
    if not cell.children:
        begin_stop(cell)
