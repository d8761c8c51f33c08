"""The budgets of the actor runtime, and whether they are reached.

The figures are ratios to contenders of the same rounds; only memory is absolute.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from benchmarks.contenders import REFERENCE
from benchmarks.lab.measure import Series
from benchmarks.lab.report import Budget, Measure, amount, ratio
from benchmarks.of_actors.idle import Idle

__all__ = ["actor_budgets"]

_MOST_MEMORY = 2 * 2**30
_MOST_IDLE = 1_000_000

# By contender and measure: the least ratio of operations per second to it.
_AT_LEAST = {"pykka": {"spawn": 30.0, "ask": 15.0, "tell": 3.0}, "autogen-core": {"ask": 2.0}}

# offbook must be slower than this contender by no measure.
_NO_SLOWER_THAN = "autogen-core"


def actor_budgets(
    measures: Sequence[Measure],
    series: Sequence[Series],
    idles: Sequence[Idle],
    differs: Mapping[tuple[str, str], str],
) -> list[Budget]:
    """`differs`, by measure and contender, says where that contender does less than the others."""
    budgets = [_memory(idles)] if idles else []
    titles = {measure.key: measure.title for measure in measures}
    found = {(one.measure, one.contender, one.placement): one for one in series}
    for placement in dict.fromkeys(one.placement for one in series):
        wanted = [
            (measure, peer, times)
            for peer, targets in _AT_LEAST.items()
            for measure, times in targets.items()
        ]
        wanted += [
            (measure.key, _NO_SLOWER_THAN, 1.0)
            for measure in measures
            if measure.key not in _AT_LEAST[_NO_SLOWER_THAN]
        ]
        for measure, peer, times in wanted:
            mine, theirs = (
                found.get((measure, REFERENCE, placement)),
                found.get((measure, peer, placement)),
            )
            if mine is not None and theirs is not None:
                budgets.append(
                    _ratio(
                        f"{titles[measure]}, against {peer}",
                        times,
                        mine,
                        theirs,
                        differs.get((measure, peer), ""),
                    )
                )
    return budgets


def _ratio(what: str, times: float, mine: Series, theirs: Series, note: str) -> Budget:
    target, placement = f"at least {ratio(times)}", mine.placement.name
    reached = mine.ratio_to(theirs).median
    figure = f"{ratio(reached)} (by CPU {ratio(mine.cpu_ratio_to(theirs))})"
    return Budget(what, target, figure, reached >= times, placement, note)


def _memory(idles: Sequence[Idle]) -> Budget:
    what, target = f"{_MOST_IDLE:,} idle actors", f"less than {amount(_MOST_MEMORY)}"
    for idle in idles:
        if idle.contender == REFERENCE and idle.count == _MOST_IDLE:
            return Budget(
                what, target, amount(idle.resident), idle.resident < _MOST_MEMORY, "own process"
            )
    return Budget(what, target, "-", None)
