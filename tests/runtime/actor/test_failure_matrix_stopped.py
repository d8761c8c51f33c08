"""The failure matrix once more: every hook raises after its actor has been told to stop.

It ends, without a fresh instance, and no failure is lost.
"""

import asyncio
import itertools
from typing import NamedTuple

import pytest

from offbook.runtime import ActorSystem, Resume
from tests.doubles.actors import Echo
from tests.doubles.failing_actors import DIRECTIVES, STROKES, VICTIMS, Script, parent_of, strike

pytestmark = pytest.mark.slow

RAISED = (ValueError, asyncio.CancelledError, KeyboardInterrupt)


class Expected(NamedTuple):
    calls: str  # after `__init__` and `on_start` of the first instance
    # Whether either `on_stop` or `on_failure` follows: which of them depends on what came first,
    # the stop or the failure.
    cleans_up: bool = False
    logged: int = 1  # how many errors of the victim and its child are in the log


TABLE = {
    "on_start": Expected(""),
    "handler (tell)": Expected("handler 1", cleans_up=True),
    "handler (ask)": Expected("handler 1", cleans_up=True),
    "proxy method": Expected("method 1", cleans_up=True),
    "on_stop": Expected("on_stop 1"),
    "on_failure": Expected("on_failure 1", logged=2),
    "on_child_failure": Expected("on_child_failure 1", cleans_up=True, logged=2),
    "__init__ at restart": Expected("on_failure 1, __init__ 2", logged=2),
    "on_start at restart": Expected("on_failure 1, __init__ 2, on_start 2", logged=2),
}


@pytest.mark.parametrize("victim", VICTIMS, ids=lambda victim: victim.__name__)
@pytest.mark.parametrize("directive", DIRECTIVES, ids=lambda directive: type(directive).__name__)
@pytest.mark.parametrize(
    "failure",
    list(itertools.product(STROKES, RAISED)),
    ids=lambda failure: f"{failure[0]}-{failure[1].__name__}",
)
def test_g04_a_hook_that_raises_while_its_actor_stops_does_not_keep_it(
    run, errors, failure, directive, victim
):
    name, error = failure
    if name == "on_failure" and directive == Resume():
        pytest.skip("a resumed actor has no on_failure that could stop it")
    stroke, outcome = STROKES[name], TABLE[name]
    if stroke.asks and issubclass(error, Exception):
        outcome = outcome._replace(logged=0)
    script = Script(stroke.hook, stroke.instance, error, stops=True)

    async def main():
        async with ActorSystem() as system:
            other = system.spawn(Echo)
            parent = system.spawn(
                parent_of(victim), (*stroke.before, directive), supervision=Resume(), name="parent"
            )
            sibling = await parent.request((Echo,))
            ref = await parent.request((victim, script))
            await strike(stroke, ref, error)
            await ref.wait_stopped()
            heard = await parent.request("heard")
            assert await sibling.request("alive") == await other.request("alive") == "alive"
            assert system.stats().actors == 3
        calls = ", ".join(f"{hook} {instance}" for hook, instance in script.calls[2:])
        endings = (
            {f"{outcome.calls}, on_stop 1", f"{outcome.calls}, on_failure 1"}
            if outcome.cleans_up
            else {outcome.calls}
        )
        assert calls in endings
        own = [text for text in errors() if text.startswith("parent/")]
        assert len(own) == outcome.logged, errors()
        assert len(errors()) - len(own) <= 1, "the parent has failed by an escalation, or has not"
        assert len(heard) <= len(stroke.before) + 1, (
            "the parent may have been asked before the stop was known, but only once"
        )

    run(main())
