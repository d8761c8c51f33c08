"""Trees of agents as data, how hypothesis draws them, and what can be said of them without building
them. `play.py` builds them.
"""

from dataclasses import dataclass, field

from hypothesis import strategies as st


@dataclass
class Chat:
    """An agent with a model: the calls of each reply, the last one being a text."""

    script: list
    subs: list = field(default_factory=list)
    tools: list = field(default_factory=list)  # agents that it calls
    one_by_one: bool = False
    raises: bool = False
    history: str | None = None
    up: str = "nobody"  # whom it hands over to, if that is what it does
    name: str = ""


@dataclass
class Custom:
    """An agent of the user's, with its steps."""

    plan: list
    subs: list = field(default_factory=list)
    stranger: bool = False  # whether those that it casts are in no tree
    restarts: bool = False  # whether it is started again when it has failed
    name: str = ""


@dataclass
class Flow:
    kind: str
    subs: list
    times: int = 1
    most: int | None = None
    name: str = ""


@dataclass
class Team:
    chief: Chat
    subs: list
    report: bool = False
    name: str = ""


@dataclass
class Back:
    """Somebody who hands over to `up` when he has ended."""

    inner: object
    up: str = "nobody"
    name: str = ""


@dataclass
class Planned:
    steps: int
    executor: Chat
    name: str = ""


WAITING = ("ask", "pay", "tool")
CALLS = st.one_of(
    st.tuples(st.just("ask"), st.integers(1, 2)),
    st.tuples(st.just("pay"), st.integers(0, 2)),
    st.tuples(st.just("echo"), st.integers(0, 4)),
    st.tuples(st.sampled_from(("tool", "tool", "transfer")), st.integers(0, 1)),
    st.tuples(
        st.sampled_from(("fail", "direct", "exit", "break", "say", "unknown", "up")), st.just(0)
    ),
)
TURNS = st.lists(CALLS, min_size=1, max_size=3)
STEPS = st.one_of(
    st.tuples(st.sampled_from(("ask", "ask", "say", "step", "set")), st.just(0)),
    st.tuples(st.sampled_from(("cast", "cast", "wait", "transfer")), st.integers(0, 2)),
    st.tuples(st.sampled_from(("exit", "break", "error", "stumble")), st.just(0)),
)
OPTIONS = st.fixed_dictionaries(
    {
        "streaming": st.booleans(),
        "skip_transfer_messages": st.booleans(),
        "event_buffer": st.sampled_from((1, 2, 1024)),
    }
)
KINDS = ("chat", "chat", "custom", "custom", "seq", "loop", "par", "par", "team", "planned")


@st.composite
def trees(draw, most=9, depth=4, kinds=KINDS):
    """A tree of up to about that many agents, with names."""
    return named(_drawn(draw, depth, [most, 1], kinds))


def named(tree):
    """Give each agent a name of its own."""
    _named(tree, iter(range(1, 1000)), "nobody")
    return tree


def _drawn(draw, depth, budget, kinds):
    budget[0] -= 1
    leaf = not depth or budget[0] <= 0
    kind = draw(st.sampled_from(("chat", "custom") if leaf else kinds))
    if kind == "planned" and not budget[1]:
        kind = "seq"  # it keeps its plan in the session, so there is one at most
    if kind == "chat":
        return _chat(draw, depth, budget, kinds, leaf=leaf)
    if kind == "custom":
        subs = [] if leaf else _some(draw, depth, budget, kinds, 0, 2)
        plan = draw(st.lists(STEPS, max_size=4))
        return Custom(
            plan, subs, draw(st.booleans()), ("error", 0) not in plan and draw(st.booleans())
        )
    if kind == "team":
        chief = Chat(
            [[("transfer", draw(st.integers(0, 1)))] for _ in range(draw(st.integers(1, 3)))], up=""
        )
        return Team(chief, _some(draw, depth, budget, kinds, 1, 2), draw(st.booleans()))
    if kind == "planned":
        budget[1] = 0
        return Planned(draw(st.integers(1, 2)), _chat(draw, 0, budget, kinds, leaf=True))
    most = draw(st.sampled_from((None, None, 1, 2))) if kind == "par" else None
    return Flow(kind, _some(draw, depth, budget, kinds, 1, 3), draw(st.integers(1, 2)), most)


def _chat(draw, depth, budget, kinds, *, leaf):
    # Of an agent that is called twice at once, nobody could tell the events of one call from those
    # of the other.
    script = [
        [call for place, call in enumerate(turn) if call[0] != "tool" or call not in turn[:place]]
        for turn in draw(st.lists(TURNS, max_size=2))
    ]
    subs = [] if leaf else _some(draw, depth, budget, kinds, 0, 2)
    subs = [Back(sub) if draw(st.booleans()) else sub for sub in subs]
    tools = [] if leaf else [_answering(tool) for tool in _some(draw, depth, budget, kinds, 0, 2)]
    waits = any(name in WAITING for turn in script for name, _ in turn)
    history = draw(st.sampled_from((None, None, None, "isolated", "run_path", "input_only")))
    return Chat(
        script, subs, tools, draw(st.booleans()), not waits and draw(st.booleans()), history
    )


def _some(draw, depth, budget, kinds, least, most):
    return [_drawn(draw, depth - 1, budget, kinds) for _ in range(draw(st.integers(least, most)))]


def _answering(tree):
    """What is called as a tool: of those in it that speak at once, none has the last word."""
    if not any(isinstance(one, Flow) and one.kind == "par" for one in walk(tree)):
        return tree
    for one in walk(tree):
        if isinstance(one, Chat) and one.up != "":
            one.script = [
                [call for call in turn if call[0] != "exit"] or [("say", 0)] for turn in one.script
            ]
        elif isinstance(one, Custom):
            one.plan = [step for step in one.plan if step[0] != "exit"]
    return Flow("seq", [tree, Custom([("say", 0)])])


def walk(tree):
    yield tree
    for sub in (
        *getattr(tree, "subs", ()),
        *getattr(tree, "tools", ()),
        *(getattr(tree, key) for key in ("inner", "executor") if hasattr(tree, key)),
    ):
        yield from walk(sub)


def _named(tree, numbers, up):
    tree.name = f"{type(tree).__name__[0]}{next(numbers)}"
    if isinstance(tree, Chat | Back):
        tree.up = up
    if isinstance(tree, Back):
        tree.inner.name = tree.name
        _below(tree.inner, numbers)
    else:
        _below(tree, numbers)


def _below(tree, numbers):
    own = tree.name if isinstance(tree, Chat | Team | Custom) else "nobody"
    for sub in getattr(tree, "subs", ()):
        _named(sub, numbers, own)
    for sub in getattr(tree, "tools", ()):
        _named(sub, numbers, "nobody")
    if isinstance(tree, Team):
        tree.chief.name = tree.name
    if isinstance(tree, Planned):
        _named(tree.executor, numbers, "nobody")


def branches(tree):
    """The names at which a lane of its own begins: the children of a Parallel, and agents that are
    called as tools. Which of these nobody sees.
    """
    found, hidden = set(), set()
    subs = [
        *getattr(tree, "subs", ()),
        *getattr(tree, "tools", ()),
        *(getattr(tree, key) for key in ("inner", "executor") if hasattr(tree, key)),
    ]
    if isinstance(tree, Flow) and tree.kind == "par":
        found |= {sub.name for sub in tree.subs}
    for index, sub in enumerate(getattr(tree, "tools", ())):
        (found if index % 2 else hidden).add(sub.name)
    for sub in subs:
        more = branches(sub)
        found |= more[0]
        hidden |= more[1]
    return found, hidden
