"""A run from its beginning to its end, over any number of processes, and how it is compared with
another one.

What is compared is all that does not depend on the clock: of what happens at once the order is left
out, and so are ids.
"""

from collections import Counter
from difflib import ndiff
from pprint import pformat

from offbook.runtime import BreakLoop, Exit, Interrupted, RunCancelled, TransferToAgent
from offbook.runtime.codec.packing import unpack
from tests.random_runs.play import plain
from tests.random_runs.trees import branches


def shown(event):
    """An event without what is another one each time."""
    action = event.action
    return (
        event.agent_name,
        ",".join(event.run_path),
        None if event.message is None else plain(event.message),
        event.custom_output,
        action if isinstance(action, BreakLoop) else None if action is None else repr(action),
        None if event.error is None else (type(event.error).__name__, str(event.error)),
    )


def is_end(event):
    """Whether it belongs to no agent's play: the end of a leg."""
    return isinstance(event.action, Interrupted) or isinstance(event.error, RunCancelled)


def in_lanes(events, apart):
    """The events as a row in which what happened at once stands together, lane by lane, and so do
    the results of the calls of one reply.
    """
    return _row(
        [
            (tuple(dict.fromkeys(name for name in event.run_path if name in apart)), event)
            for event in events
        ]
    )


def _row(events):
    row, results, lanes = [], [], {}

    def close():
        if results or lanes:
            row.append(
                (
                    sorted(results, key=repr),
                    {name: _row(lane) for name, lane in sorted(lanes.items())},
                )
            )
            results.clear()
            lanes.clear()

    own = [event for lane, event in events if not lane]
    for lane, event in events:
        if lane:
            lanes.setdefault(lane[0], []).append((lane[1:], event))
            continue
        own.pop(0)
        if _is_result(event) and (not _comes_last(event) or (own and _is_result(own[0]))):
            results.append(shown(event))
        else:
            close()
            row.append(shown(event))
    close()
    return row


def _comes_last(event):
    """Whether it is the result of a call that may have to come behind those of all others."""
    return event.message.tool_name == "direct" or isinstance(event.action, Exit | TransferToAgent)


def _is_result(event):
    return event.message is not None and event.message.role == "tool"


def is_reply(message):
    """Whether it is what a model has said, and nothing that an agent says by itself."""
    return message.text != "the answer" and not any(
        call.name == "transfer_to_agent" and '": "' not in call.arguments
        for call in message.tool_calls
    )


def told(messages):
    """What somebody was given.

    The results of the calls of one reply come in the order in which they were there.
    """
    found, results = [], []
    for message in messages:
        if "tool returned result" in message[1]:
            results.append(message)
        else:
            found += sorted(results)
            results = []
            found.append(message)
    return (*found, *sorted(results))


def counted(log):
    return Counter((name, told(messages)) for name, messages in log)


def same(found, wanted):
    """Fail, and show where they differ."""
    if found != wanted:
        raise AssertionError(
            "\n".join(
                ndiff(
                    pformat(wanted, width=200).splitlines(), pformat(found, width=200).splitlines()
                )
            )
        )


class Story:
    """A run from its beginning to its end, over all its legs."""

    def __init__(self, tree):
        self.tree = tree
        self.events = []
        self.deltas = []
        self.inputs = []
        self.asked = []
        self.called = []
        self.cut = Counter()
        self.legs = []  # how each has ended
        self.result = None

    def show(self, events):
        for event in events:
            (self.events if event.delta is None else self.deltas).append(event)

    def take(self, world, result):
        self.inputs += world.inputs
        self.asked += world.asked
        self.called += world.called
        self.cut += world.cut
        self.result = result
        self.legs.append("lost" if result is None else result.status.value)

    def lose(self, world, records):
        """Its process is no more: of what it has done, only that counts which is in the records."""
        kept = set()
        failed = {event.invocation_id for event in journal_of(records) if event.error is not None}
        for change in changes_of(records):
            if change[0] == "event" and _is_result(change[2]):
                kept.add((change[2].invocation_id, change[2].message.tool_call_id))
            elif change[0] == "step":
                kept.add((change[1], change[2]))
            elif change[0] == "frame" and "held" in (frame := unpack(change[2])).get("notes", {}):
                kept.add((change[1], frame["notes"]["held"][0]))
        for kind, label, key in world.called:
            if kind == "step":
                self.cut["step"] += (key, f"step {label.partition(':')[2]}") not in kept
            elif kind != "ask":
                invocation, call = world.places[key]
                self.cut["tool"] += (invocation, call) not in kept and invocation not in failed
        said = [
            event
            for event in journal_of(records)
            if event.message is not None and event.message.role == "assistant"
        ]
        asked = Counter(name for name, _ in world.asked)
        for name in asked:
            self.cut["model"] += asked[name] - sum(
                event.agent_name == name and is_reply(event.message) for event in said
            )

    @property
    def row(self):
        apart, hidden = branches(self.tree)
        return in_lanes(
            [
                event
                for event in self.events
                if not is_end(event) and not hidden & set(event.run_path)
            ],
            apart,
        )

    def check(self, reference, *, again=False):
        """It is the same as the reference.

        `again`: what was under way when it was cut short was done again.
        """
        same(self.row, reference.row)
        wanted, found = reference.result, self.result
        assert found.status is wanted.status
        assert (type(found.error), str(found.error)) == (type(wanted.error), str(wanted.error))
        assert found.session_values == wanted.session_values
        # What is said at once is in the order of the clock.
        if not branches(self.tree)[0] and found.final_message is not None:
            assert plain(found.final_message) == plain(wanted.final_message)
        extra = counted(self.asked) - counted(reference.asked)
        assert not counted(reference.asked) - counted(self.asked)
        assert sum(extra.values()) == self.cut["model"], (extra, self.cut)
        assert set(counted(self.inputs)) == set(counted(reference.inputs))
        if not again:
            assert not self.cut
        self._check_calls(reference)
        assert found.usage == wanted.usage

    def _check_calls(self, reference):
        kept = [
            [entry for entry in log if entry[0] != "ask"] for log in (reference.called, self.called)
        ]
        wanted, found = (Counter(entry[:2] for entry in log) for log in kept)
        assert not wanted - found
        extra = found - wanted
        assert sum(extra.values()) == self.cut["tool"] + self.cut["step"], (extra, self.cut)
        # A call that is made again has the same key.
        keys = Counter(entry[:2] for entry in set(self.called))
        assert keys == Counter(entry[:2] for entry in set(reference.called))


def changes_of(records):
    return [change for record in records for change in unpack(record)]


def journal_of(records):
    """The events in a journal."""
    return [change[2] for change in changes_of(records) if change[0] == "event"]
