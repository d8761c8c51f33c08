"""Where a key belongs: everybody who knows the same hosts agrees, and a host that comes or goes
moves its share alone.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from offbook.runtime.cluster.placement import Placement

NAMES = st.lists(st.text(min_size=1, max_size=8), min_size=1, max_size=12, unique=True)


@given(NAMES, st.text(max_size=20), st.randoms())
def test_the_order_in_which_hosts_are_known_does_not_matter(names, key, random):
    shuffled = random.sample(names, len(names))
    assert Placement(names).ranked(key) == Placement(shuffled).ranked(key)


@given(NAMES, st.text(max_size=20))
def test_the_first_host_is_the_first_of_the_ranked_ones(names, key):
    placement = Placement(names)
    assert placement.first(key) == placement.ranked(key)[0] == placement.first_of(key, ())
    assert sorted(placement.ranked(key)) == sorted(names)


@given(NAMES, st.text(max_size=20), st.data())
def test_a_host_that_goes_moves_only_what_it_had(names, key, data):
    gone = data.draw(st.sampled_from(names))
    left = Placement([name for name in names if name != gone])
    assert left.ranked(key) == [name for name in Placement(names).ranked(key) if name != gone]
    assert Placement(names).first_of(key, {gone}) == left.first(key)


@given(NAMES, st.text(max_size=20), st.data())
def test_a_rank_counts_only_the_hosts_that_are_there(names, key, data):
    away = data.draw(st.sets(st.sampled_from(names)))
    placement = Placement(names)
    ranks = {name: placement.rank(key, name, away - {name}) for name in names}
    there = [name for name in placement.ranked(key) if name not in away]
    assert sorted(there, key=ranks.get) == there
    assert [ranks[name] for name in there] == list(range(len(there)))
    assert placement.rank(key, "no such host!") is None


def test_no_host_is_no_place():
    assert Placement(()).first("key") is None
    assert Placement(("a",)).first_of("key", {"a"}) is None


@pytest.mark.parametrize("hosts", [2, 10, 50])
def test_keys_are_spread_evenly(hosts):
    placement = Placement(f"shop/{number}" for number in range(hosts))
    counts = dict.fromkeys(placement.names, 0)
    keys = 200 * hosts
    for number in range(keys):
        counts[placement.first(f"user-{number}")] += 1
    assert max(counts.values()) < 1.35 * keys / hosts
    assert min(counts.values()) > 0.65 * keys / hosts
