"""The failure matrix: every hook, whatever it raises, in both kinds of actor, under every
directive; what becomes of it is in one table.

Hooks that are stopped while they fail: test_failure_matrix_stopped.py. Hooks that never end:
test_failure_matrix_hangs.py.
"""

import itertools
from typing import NamedTuple

import pytest

from offbook.runtime import ActorSystem, Resume, Stop
from tests.doubles.actors import Echo
from tests.doubles.failing_actors import (
    DIRECTIVES,
    RAISED,
    STROKES,
    VICTIMS,
    Script,
    parent_of,
    strike,
)

# --- what is expected ---


class Expected(NamedTuple):
    lives_as: int | None  # the number of the instance that lives on; None: the actor has ended
    calls: str  # after `__init__` and `on_start` of the first instance
    heard: int = 1  # how many failures the parent has been asked about
    logged: int = 1  # how many errors are in the log: one for each failure, whosever it is


NEXT = "__init__ 2, on_start 2"
LAST = "__init__ 3, on_start 3"

TABLE = {
    # The hook:            Restart, Resume, Stop, Escalate. The parent's own failure is one more in
    #                      the log.
    "on_start": (
        Expected(2, NEXT),
        Expected(None, ""),
        Expected(None, ""),
        Expected(None, "", logged=2),
    ),
    "handler (tell)": (
        Expected(2, f"handler 1, on_failure 1, {NEXT}"),
        Expected(1, "handler 1"),
        Expected(None, "handler 1, on_failure 1"),
        Expected(None, "handler 1, on_failure 1", logged=2),
    ),
    "proxy method": (
        Expected(2, f"method 1, on_failure 1, {NEXT}"),
        Expected(1, "method 1"),
        Expected(None, "method 1, on_failure 1"),
        Expected(None, "method 1, on_failure 1", logged=2),
    ),
    "on_stop": (
        Expected(None, "on_stop 1"),
        Expected(None, "on_stop 1"),
        Expected(None, "on_stop 1"),
        Expected(None, "on_stop 1", logged=2),
    ),
    # It fails in a handler before: that is one failure, and `on_failure` the second, of which
    # nobody hears.
    "on_failure": (
        Expected(2, f"on_failure 1, {NEXT}", logged=2),
        Expected(1, "", logged=1),
        Expected(None, "on_failure 1", logged=2),
        Expected(None, "on_failure 1", logged=3),
    ),
    # Its child fails before: that is one failure, and its own is the second.
    "on_child_failure": (
        Expected(2, f"on_child_failure 1, on_failure 1, {NEXT}", logged=2),
        Expected(1, "on_child_failure 1", logged=2),
        Expected(None, "on_child_failure 1, on_failure 1", logged=2),
        Expected(None, "on_child_failure 1, on_failure 1", logged=3),
    ),
    # It fails in a handler before, and is restarted.
    "__init__ at restart": (
        Expected(3, f"on_failure 1, __init__ 2, {LAST}", heard=2, logged=2),
        Expected(None, "on_failure 1, __init__ 2", heard=2, logged=2),
        Expected(None, "on_failure 1, __init__ 2", heard=2, logged=2),
        Expected(None, "on_failure 1, __init__ 2", heard=2, logged=3),
    ),
    "on_start at restart": (
        Expected(3, f"on_failure 1, {NEXT}, {LAST}", heard=2, logged=2),
        Expected(None, f"on_failure 1, {NEXT}", heard=2, logged=2),
        Expected(None, f"on_failure 1, {NEXT}", heard=2, logged=2),
        Expected(None, f"on_failure 1, {NEXT}", heard=2, logged=3),
    ),
}
TABLE["handler (ask)"] = TABLE["handler (tell)"]  # for whatever is no ordinary exception


def expected(name, error, directive):
    stroke = STROKES[name]
    if stroke.asks and issubclass(error, Exception):
        return Expected(1, f"{stroke.hook} 1", heard=0, logged=0)
    return TABLE[name][DIRECTIVES.index(directive)]


@pytest.mark.parametrize("victim", VICTIMS, ids=lambda victim: victim.__name__)
@pytest.mark.parametrize("directive", DIRECTIVES, ids=lambda directive: type(directive).__name__)
@pytest.mark.parametrize(
    "failure",
    list(itertools.product(STROKES, RAISED)),
    ids=lambda failure: f"{failure[0]}-{failure[1].__name__}",
)
def test_g04_whatever_a_hook_raises_ends_where_the_table_says(
    run, errors, failure, directive, victim
):
    name, error = failure
    stroke, outcome = STROKES[name], expected(name, error, directive)
    script = Script(stroke.hook, stroke.instance, error)

    async def main():
        async with ActorSystem() as system:
            other = system.spawn(Echo)
            parent = system.spawn(
                parent_of(victim), (*stroke.before, directive), supervision=Resume(), name="parent"
            )
            sibling = await parent.request((Echo,))
            ref = await parent.request((victim, script))
            await strike(stroke, ref, error)
            if outcome.lives_as is None:
                await ref.wait_stopped()
                assert not ref.is_alive()
            else:
                assert await ref.request("number") == outcome.lives_as
            heard = await parent.request("heard")
            assert await sibling.request("alive") == await other.request("alive") == "alive"
            assert len(heard) == outcome.heard
            if outcome.heard:
                assert type(heard[-1]) is (ArithmeticError if name == "on_failure" else error)
            calls, logged = list(script.calls), errors()
            assert len(logged) == outcome.logged, logged
            assert system.stats().actors == (3 if outcome.lives_as is None else 4)
        started = [("__init__", 1), ("on_start", 1)]
        assert calls[:2] == started
        assert ", ".join(f"{hook} {instance}" for hook, instance in calls[2:]) == outcome.calls
        assert script.calls == calls + (
            [("on_stop", outcome.lives_as)] if outcome.lives_as else []
        ), "what lives on is stopped in the end, and nothing else is"
        if outcome.logged:
            assert any(
                "victim failed in" in text or "victim: on_failure raised" in text for text in logged
            )
            assert any(error.__name__ in text for text in logged) or outcome.calls == ""

    run(main())


@pytest.mark.parametrize("victim", VICTIMS[:2], ids=lambda victim: victim.__name__)
@pytest.mark.parametrize("error", RAISED, ids=lambda error: error.__name__)
def test_g04_what_init_raises_at_the_spawn_is_the_spawners_and_nobody_elses(
    run, errors, error, victim
):
    script = Script("__init__", 1, error)

    async def main():
        async with ActorSystem() as system:
            parent = system.spawn(parent_of(victim), (Stop(),), supervision=Stop())
            sibling = await parent.request((Echo,))
            with pytest.raises(error, match="script"):
                system.spawn(victim, script)
            if issubclass(error, Exception):
                with pytest.raises(error, match="script"):
                    await parent.request((victim, Script("__init__", 1, error)))
            assert await sibling.request("alive") == "alive"
            assert await parent.request("heard") == []
            assert system.stats().actors == 2
        assert script.calls == [("__init__", 1)]
        assert errors() == []

    run(main())
