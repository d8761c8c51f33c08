"""What the tests of damaged checkpoints share: structures as they are in bytes, in which any part
can be replaced by something that does not belong there.
"""

import copy

import msgspec
from hypothesis import strategies as st
from msgspec.structs import force_setattr

from offbook.runtime import AddressStep, AgentEvent, InterruptContext, MemoryStore, Message, Usage
from offbook.runtime.codec.packing import pack, unpack
from offbook.runtime.data.interrupt import Answer, Pending
from offbook.runtime.data.outcome import Outcome
from offbook.runtime.data.value import table_of
from offbook.runtime.stores import RunEntry

MAGIC = b"\xc1ob"
WAITING = Pending(InterruptContext("i", ()))
JUNK = [
    *(
        None,
        True,
        False,
        -1,
        0,
        1,
        2,
        5,
        2**31,
        2**70,
        1.5,
        float("nan"),
        float("inf"),
        "",
        "x",
        "Root",
        "finished",
        "interrupted",
        "x" * 3000,
    ),
    *(
        b"",
        b"x",
        [],
        [1],
        [None],
        [["x"]],
        {},
        {"x": 1},
        {1: 2},
        {"x": {"in": "x"}},
        (),
        (1,),
        ("Root",),
        ("Root", "L"),
        set(),
        frozenset([1]),
    ),
    *(
        Message.assistant("junk"),
        Message.tool("t", "1", "n"),
        Usage(1),
        AgentEvent.say("x"),
        ValueError("v"),
        AddressStep("tool", "ask", "x"),
    ),
    *(
        Outcome(),
        Outcome("failed"),
        Outcome("interrupted"),
        Outcome("exited"),
        InterruptContext("i", ()),
        WAITING,
        Answer(WAITING, True, 1),
    ),
]


def steps_into(value):
    """What leads to the parts of a value; bytes that hold a value have one part."""
    if isinstance(value, dict):
        return list(value)
    if isinstance(value, list | tuple):
        return list(range(len(value)))
    if (table := table_of(value)) is not None:
        return list(table)
    return ["value"] if isinstance(value, bytes) and value.startswith(MAGIC) else []


def part(value, step):
    if isinstance(value, bytes):
        return unpack(value)
    return value[step] if isinstance(value, dict | list | tuple) else getattr(value, step)


def replaced(value, step, new):
    """The value with another part in that place."""
    if isinstance(value, bytes):
        return pack(new)
    if isinstance(value, dict):
        return {**value, step: new}
    if isinstance(value, list | tuple):
        return type(value)([*value[:step], new, *value[step + 1 :]])
    made = copy.copy(value)  # its own checks are not asked: bytes may say anything
    change = force_setattr if isinstance(value, msgspec.Struct) else object.__setattr__
    change(made, step, new)
    return made


def put_at(value, path, new):
    """The value with something else at the end of that path."""
    if len(path) < 2:
        return replaced(value, path[0], new) if path else new
    return replaced(value, path[0], put_at(part(value, path[0]), path[1:], new))


@st.composite
def damaged(draw, value):
    """The value with one part of it replaced, left out, doubled, or under another name."""
    path, at = [], value
    while (steps := steps_into(at)) and (not path or draw(st.integers(0, 7))):
        path.append(draw(st.sampled_from(steps)))
        at = part(at, path[-1])
    how = draw(st.sampled_from(("junk", "junk", "junk", "elsewhere", "without", "doubled")))
    if how == "junk" or not path:
        return put_at(value, path, draw(st.sampled_from(JUNK)))
    if how == "elsewhere":
        other = value
        for _ in range(draw(st.integers(1, 6))):
            if steps := steps_into(other):
                other = part(other, draw(st.sampled_from(steps)))
        return put_at(value, path, other)
    around = value
    for step in path[:-1]:
        around = part(around, step)
    last = path[-1]
    if isinstance(around, dict):
        without = {key: item for key, item in around.items() if key != last}
        return put_at(
            value,
            path[:-1],
            without
            if how == "without"
            else {
                **without,
                draw(st.sampled_from(["x", "", None, 1, "Root", "frames"])): around[last],
            },
        )
    if isinstance(around, list | tuple):
        return put_at(
            value,
            path[:-1],
            type(around)(
                [
                    *around[:last],
                    *(around[last : last + 1] if how == "doubled" else ()),
                    *around[last + (how == "without") :],
                ]
            ),
        )
    return put_at(value, path, None)


def store_with(content):
    """A store with that in it: for each key its value, and its records; or the row of a run that a
    process has to continue, under its claim.
    """
    store = MemoryStore()
    for key, (value, records) in content.items():
        if isinstance(value, RunEntry):
            store._runs.put(value, store._time(), None)
            continue
        entry = store._written(key)
        entry.value, entry.records = value, list(records)
    return store


def content_of(store):
    rows = [row for row, *_ in store._runs._entries.values() if row.claim]
    return {
        **{key: (entry.value, tuple(entry.records)) for key, entry in store._entries.items()},
        **{row.claim: (row, ()) for row in rows},
    }
