"""Any sequence of calls, against dictionaries: what a store answers is what they hold."""

import asyncio
import itertools

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

KEYS = st.sampled_from(["a", "a%", "a_b", "ab", "b", "ä", "\ud800", "a\0"])
OWNERS = st.sampled_from(["me", "you"])
BYTES = st.binary(max_size=20)
LONG = 1000.0


class StoreMachine(RuleBasedStateMachine):
    store = None  # set for each kind

    def __init__(self):
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.values, self.journals, self.leases = {}, {}, {}
        for key in self.ask(self.store.keys()):
            self.ask(self.store.delete(key))
        for key, owner in itertools.product(["a", "a%", "a_b", "ab", "b", "ä", "\ud800", "a\0"], ["me", "you"]):
            self.ask(self.store.release(key, owner))

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
        assert self.ask(self.store.keys(prefix)) == sorted(key for key in {*self.values, *self.journals} if key.startswith(prefix))

    @rule(key=KEYS, owner=OWNERS)
    def acquire(self, key, owner):
        free = self.leases.get(key, owner) == owner
        assert self.ask(self.store.acquire(key, owner, LONG)) is free
        if free:
            self.leases[key] = owner

    @rule(keys=st.lists(KEYS, max_size=4, unique=True), owner=OWNERS)
    def renew(self, keys, owner):
        assert sorted(self.ask(self.store.renew(keys, owner, LONG))) == sorted(key for key in keys if self.leases.get(key) == owner)

    @rule(key=KEYS, owner=OWNERS)
    def release(self, key, owner):
        self.ask(self.store.release(key, owner))
        if self.leases.get(key) == owner:
            del self.leases[key]

    @rule()
    def prune(self):
        assert self.ask(self.store.prune(LONG)) == 0

    @rule(keys=st.lists(KEYS, min_size=1, max_size=6), value=BYTES)
    def several_at_once(self, keys, value):
        async def main():
            return await asyncio.gather(*(self.store.append(key, [value, value]) for key in keys), *(self.store.get(key) for key in keys))

        answers = self.ask(main())
        for key in keys:
            self.journals.setdefault(key, []).extend([value, value])
        for key in set(keys):
            sizes = [size for size, of in zip(answers, keys, strict=False) if of == key]
            assert sizes == list(range(len(self.journals[key]) - 2 * (len(sizes) - 1), len(self.journals[key]) + 1, 2))
        assert answers[len(keys) :] == [self.values.get(key) for key in keys]

    @invariant()
    def everything_is_there(self):
        for key in ("a", "a\0"):
            assert self.ask(self.store.get(key)) == self.values.get(key)
            assert self.ask(self.store.holder(key)) == self.leases.get(key)


@pytest.mark.parametrize(("kind", "examples"), [("memory", 60), ("sqlite", 20), ("redis", 15), ("postgres", 10)])
def test_it_answers_what_dictionaries_hold(store_of, kind, examples):
    machine = type("Machine", (StoreMachine,), {"store": store_of(kind)})
    checks = (HealthCheck.too_slow, HealthCheck.function_scoped_fixture)
    run_state_machine_as_test(machine, settings=settings(max_examples=examples, stateful_step_count=25, deadline=None, suppress_health_check=checks))
