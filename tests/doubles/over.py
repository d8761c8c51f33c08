"""One test over many things of one kind, such as all files.

Owns: `over`. A test for each would take longer to begin than to run.
"""

from collections.abc import Callable, Iterable
from typing import TypeVar

__all__ = ["over"]

T = TypeVar("T")


def over(
    things: Iterable[T], shown: Callable[[T], str] = str
) -> Callable[[Callable[[T], None]], Callable[[], None]]:
    """The check as a test of all things, which names those for which it fails, each with what is
    wrong.
    """

    def as_test(check: Callable[[T], None]) -> Callable[[], None]:
        def test() -> None:
            looked_at, failed = 0, []
            for thing in things:
                looked_at += 1
                try:
                    check(thing)
                except AssertionError as problem:
                    failed.append(f"{shown(thing)}: {problem}")
            assert looked_at
            assert not failed, "\n".join(failed)

        test.__name__ = check.__name__
        test.__doc__ = check.__doc__
        return test

    return as_test
