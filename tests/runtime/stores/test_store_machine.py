"""Any sequence of calls, against dictionaries: what a store answers is what they hold."""

import asyncio

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from offbook.runtime.errors import WriteRefused
from offbook.runtime.stores import Append, Expect, Put, Remove

KEYS = st.sampled_from(["a", "a%", "a_b", "ab", "b", "ä", "\ud800", "a\0"])
OWNERS = st.sampled_from(["me", "you"])
BYTES = st.binary(max_size=20)
WRITES = st.lists(
    st.one_of(
        st.builds(Put, KEYS, BYTES),
        st.builds(Remove, KEYS),
        st.builds(
            Append, KEYS, st.lists(BYTES, min_size=1, max_size=3).map(tuple), st.integers(0, 3)
        ),
        st.builds(Expect, KEYS, st.none() | BYTES),
    ),
    max_size=3,
)
LONG = 1000.0


class StoreMachine(RuleBasedStateMachine):
    store = None  # set for each kind

    def __init__(self):
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.values, self.journals, self.owners, self.holding = {}, {}, set(), {}
        self.claims, self.last_epoch = [], 0
        for key in self.ask(self.store.keys()):
            self.ask(self.store.delete(key))
        for owner in ("me", "you"):
            self.ask(self.store.revoke(owner))
        self.ask(self.store.prune())

    def ask(self, call):
        return self.loop.run_until_complete(call)

    def teardown(self):
        self.loop.close()

    @rule(key=KEYS, value=BYTES)
    def set(self, key, value):
        self.ask(self.store.set(key, value))
        self.values[key] = value

    @rule(key=KEYS, value=BYTES)
    def create(self, key, value):
        free = key not in self.values and key not in self.journals
        assert self.ask(self.store.create(key, value)) is free
        if free:
            self.values[key] = value

    @rule(key=KEYS, records=st.lists(BYTES, max_size=4))
    def append(self, key, records):
        if records:
            self.journals.setdefault(key, []).extend(records)
        assert self.ask(self.store.append(key, records)) == len(self.journals.get(key, []))

    @rule(key=KEYS)
    def delete(self, key):
        self.ask(self.store.delete(key))
        self.values.pop(key, None)
        self.journals.pop(key, None)

    @rule(key=KEYS, after=st.integers(0, 5))
    def read(self, key, after):
        assert self.ask(self.store.read(key, after)) == self.journals.get(key, [])[after:]

    @rule(prefix=st.sampled_from(["", "a", "a%", "a_", "ä", "\ud800", "zz"]))
    def keys(self, prefix):
        assert self.ask(self.store.keys(prefix)) == sorted(
            key for key in {*self.values, *self.journals} if key.startswith(prefix)
        )

    @rule(owner=OWNERS, first=st.booleans())
    def keep_alive(self, owner, first):
        assert self.ask(self.store.keep_alive(owner, LONG, first=first)) is (
            first or owner in self.owners
        )
        if first:
            self.owners.add(owner)

    @rule(owner=OWNERS)
    def revoke(self, owner):
        self.ask(self.store.revoke(owner))
        self.owners.discard(owner)

    @rule(key=KEYS, owner=OWNERS, writes=WRITES)
    def claim(self, key, owner, writes):
        holder, attempts = self.holding.get(key, ("", 0))
        if holder != owner and holder in self.owners:
            assert self.ask(self.store.claim(key, owner, writes)) is None
            return
        reason = "owner" if owner not in self.owners else self.objection(writes)
        claim = self.ask_for(self.store.claim(key, owner, writes), reason)
        if claim is not None:
            assert (claim.key, claim.owner, claim.attempts) == (key, owner, attempts + 1)
            assert claim.epoch > self.last_epoch
            self.last_epoch = claim.epoch
            self.holding[key] = (owner, attempts + 1)
            self.claims.append(claim)
            self.do(writes)

    @rule(
        which=st.integers(0, 5),
        writes=WRITES,
        then=st.sampled_from(["keep", "keep", "release", "forget"]),
    )
    def commit(self, which, writes, then):
        """One of the latest claims, which may be over by now, or none."""
        claim = ([*self.claims[:-6:-1], None] * 6)[which]
        reason = None
        if claim is not None:
            current = [of for of in self.claims if of.key == claim.key][-1] is claim
            if not current or self.holding.get(claim.key, ("",))[0] != claim.owner:
                reason = "epoch"
            elif claim.owner not in self.owners:
                reason = "owner"
        reason = reason or self.objection(writes)
        self.ask_for(self.store.commit(claim, writes, then=then), reason)
        if reason is None:
            self.do(writes)
            if claim is not None and then == "forget":
                del self.holding[claim.key]
            elif claim is not None and then == "release":
                self.holding[claim.key] = ("", 0)

    @rule(prefix=st.sampled_from(["", "a", "a%", "ä", "zz"]), limit=st.sampled_from([None, 1, 3]))
    def orphans(self, prefix, limit):
        found = [
            key
            for key in self.values
            if key.startswith(prefix) and self.holding.get(key, ("", 0))[0] not in self.owners
        ]
        found.sort(key=lambda key: (self.holding.get(key, ("", 0))[1], key))
        assert self.ask(self.store.orphans(prefix, limit)) == found[:limit]

    def ask_for(self, call, reason):
        """What it answers, which has to be a refusal if there is a reason for one."""
        if reason is None:
            return self.ask(call)
        with pytest.raises(WriteRefused) as caught:
            self.ask(call)
        assert caught.value.reason == reason
        return None

    def objection(self, writes):
        for write in writes:
            if type(write) is Append and write.after != len(self.journals.get(write.key, [])):
                return "position"
            if (
                type(write) is Expect
                and write.value is None
                and (write.key in self.values or write.key in self.journals)
            ):
                return "value"
            if (
                type(write) is Expect
                and write.value is not None
                and self.values.get(write.key) != write.value
            ):
                return "value"
        return None

    def do(self, writes):
        for write in writes:
            if type(write) is Append:
                self.journals.setdefault(write.key, []).extend(write.records)
            elif type(write) is Put:
                self.values[write.key] = write.value
            elif type(write) is Remove:
                self.values.pop(write.key, None)
                self.journals.pop(write.key, None)

    @rule()
    def prune(self):
        gone = {
            key
            for key, (owner, _) in self.holding.items()
            if owner not in self.owners and key not in self.values and key not in self.journals
        }
        assert self.ask(self.store.prune(LONG)) == len(gone)
        for key in gone:
            del self.holding[key]

    @rule(keys=st.lists(KEYS, min_size=1, max_size=6), value=BYTES)
    def several_at_once(self, keys, value):
        async def main():
            return await asyncio.gather(
                *(self.store.append(key, [value, value]) for key in keys),
                *(self.store.get(key) for key in keys),
            )

        answers = self.ask(main())
        for key in keys:
            self.journals.setdefault(key, []).extend([value, value])
        for key in set(keys):
            sizes = [size for size, of in zip(answers, keys, strict=False) if of == key]
            assert sizes == list(
                range(
                    len(self.journals[key]) - 2 * (len(sizes) - 1), len(self.journals[key]) + 1, 2
                )
            )
        assert answers[len(keys) :] == [self.values.get(key) for key in keys]

    @invariant()
    def everything_is_there(self):
        for key in ("a", "a\0"):
            assert self.ask(self.store.get(key)) == self.values.get(key)
            holder = self.holding.get(key, ("", 0))[0]
            assert self.ask(self.store.holder(key)) == (holder if holder in self.owners else None)


@pytest.mark.parametrize(
    ("kind", "examples"),
    [
        ("memory", 60),
        ("sqlite", 20),
        pytest.param("redis", 15, marks=pytest.mark.slow),
        pytest.param("postgres", 10, marks=pytest.mark.slow),
    ],
)
def test_it_answers_what_dictionaries_hold(store_of, kind, examples):
    machine = type("Machine", (StoreMachine,), {"store": store_of(kind)})
    checks = (HealthCheck.too_slow, HealthCheck.function_scoped_fixture)
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=25,
            deadline=None,
            suppress_health_check=checks,
        ),
    )
