"""Values go into bytes and come back the same, with their own types; what cannot is refused with
the place where it is.
"""

import dataclasses
import enum
import math
import subprocess
import sys
import threading
import uuid
from dataclasses import InitVar, dataclass, field
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import pydantic
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from offbook.runtime.codec.packing import pack, register_type, unpack
from offbook.runtime.data.chat import (
    FilePart,
    ImagePart,
    Message,
    MessageDelta,
    TextPart,
    ToolCall,
    ToolCallDelta,
    Usage,
)
from offbook.runtime.data.events import (
    AgentEvent,
    BreakLoop,
    CustomAction,
    Exit,
    Interrupted,
    TransferToAgent,
)
from offbook.runtime.data.interrupt import AddressStep, InterruptContext
from offbook.runtime.data.value import table_of
from offbook.runtime.errors import CheckpointError, UsageError
from offbook.runtime.models.protocol import ModelSettings, ToolSpec


@register_type(name="test.Color")
class Color(enum.Enum):
    RED = "r"
    BLUE = "b"


@register_type(name="test.Level")
class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


@register_type(name="test.Word")
class Word(enum.StrEnum):
    YES = "yes"


@register_type(name="test.Rights")
class Rights(enum.Flag):
    READ = 1
    WRITE = 2


@register_type(name="test.Item")
@dataclass(frozen=True, slots=True)
class Item:
    name: Any
    price: Any = 0


@register_type(name="test.Cart")
@dataclass
class Cart:
    items: list[Any] = field(default_factory=list)
    total: int = field(default=0, init=False)
    note: Any = field(default=None, kw_only=True)


@register_type(name="test.Point")
class Point(NamedTuple):
    x: Any
    y: Any = 0


@register_type(name="test.Empty")
@dataclass
class Empty:
    pass


@register_type(name="test.Base")
class Base(pydantic.BaseModel):
    number: int = 0


@register_type(name="test.Derived")
class Derived(Base):
    more: str = ""


@register_type(name="test.Order")
class Order(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="allow", arbitrary_types_allowed=True)

    owner: Base
    item: Item | None = None
    count: int = pydantic.Field(default=1, alias="Count")
    anything: Any = None


@register_type(name="test.Numbers")
class Numbers(pydantic.RootModel[list[int]]):
    pass


ZONES = st.none() | st.sampled_from(
    [
        UTC,
        timezone(timedelta(hours=2)),
        timezone(timedelta(minutes=-90), "odd"),
        ZoneInfo("Europe/Paris"),
    ]
)
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(min_value=-(2**200), max_value=2**200),
    st.floats(allow_nan=False),
    st.text(),
    st.text(st.characters(categories=["Cs"]), max_size=3),
    st.binary(),
    st.datetimes(timezones=ZONES, allow_imaginary=True),
    st.dates(),
    st.times(timezones=st.none() | st.just(UTC)),
    st.timedeltas(),
    st.uuids(),
    st.decimals(allow_nan=False),
    st.complex_numbers(allow_nan=False),
    st.sampled_from([*Color, *Level, *Word, Rights.READ | Rights.WRITE, Rights(0)]),
)
KEYS = st.recursive(
    SCALARS,
    lambda inner: (
        st.tuples(inner, inner) | st.builds(Item, inner, inner) | st.frozensets(inner, max_size=3)
    ),
    max_leaves=4,
)


def carts(inner):
    def cart(items, total, note):
        made = Cart(items, note=note)
        made.total = total
        return made

    return st.builds(cart, st.lists(inner, max_size=3), st.integers(), inner)


VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=4).map(tuple),
        st.dictionaries(KEYS, inner, max_size=4),
        st.sets(KEYS, max_size=4),
        st.frozensets(KEYS, max_size=4),
        st.builds(Item, inner, inner),
        st.builds(Point, inner, inner),
        carts(inner),
        st.builds(
            lambda x, n: Order(owner=Derived(number=n, more="m"), Count=n, anything=x, beside=x),
            inner,
            st.integers(),
        ),
    ),
    max_leaves=12,
)


def same(one, other):
    """Equal, and of the same types all the way down."""
    if type(one) is not type(other):
        return False
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict):
        return one == other and all(same(item, other[key]) for key, item in one.items())
    if (table := table_of(one)) is not None:
        return same(table, table_of(other))
    if isinstance(one, pydantic.BaseModel):
        return same(dict(one), dict(other)) and one.model_fields_set == other.model_fields_set
    if isinstance(one, datetime):
        return (
            one == other and one.fold == other.fold and one.tzinfo == other.tzinfo
            if one.tzinfo is None
            else same(one.replace(tzinfo=None), other.replace(tzinfo=None))
        )
    return one == other


@settings(max_examples=100, deadline=None)
@given(VALUES)
def test_what_goes_in_comes_back(value):
    assert same(value, unpack(pack(value)))


def test_numbers_that_equal_nothing_come_back():
    assert math.isnan(unpack(pack(math.nan)))
    assert unpack(pack([math.inf, -math.inf])) == [math.inf, -math.inf]
    assert unpack(pack(Decimal("sNaN12"))).is_snan()
    assert math.copysign(1, unpack(pack(-0.0))) == -1


def test_a_time_zone_keeps_its_kind_and_the_fold():
    twice = datetime(2024, 10, 27, 2, 30, tzinfo=ZoneInfo("Europe/Paris"), fold=1)
    back = unpack(pack(twice))
    assert (back.tzinfo.key, back.fold, back.utcoffset()) == ("Europe/Paris", 1, twice.utcoffset())
    assert unpack(pack(datetime.now(UTC))).tzinfo is UTC
    assert unpack(pack(time(1, fold=1, tzinfo=timezone(timedelta(0), "x")))).tzname() == "x"
    assert unpack(pack(date(1, 1, 1))) == date(1, 1, 1)


CONTEXT = InterruptContext(
    "i",
    (AddressStep("agent", "a"), AddressStep("tool", "t", "1")),
    {"why": (1,)},
    parent=InterruptContext("p", ()),
)
MESSAGE = Message(
    "assistant",
    (TextPart("a"), ImagePart(data=b"x", media_type="image/png"), FilePart("http://x", name="f")),
    (ToolCall("1", "f", "{}"),),
    usage=Usage(1, 2),
)


@pytest.mark.parametrize(
    "action",
    [
        None,
        Exit(),
        Interrupted((CONTEXT,)),
        TransferToAgent("b"),
        BreakLoop("a", done=True, iteration=2),
        CustomAction(Item("x")),
    ],
)
def test_events_come_back_with_all_that_is_in_them(action):
    event = AgentEvent(
        "a",
        ("a", "b"),
        MESSAGE,
        MessageDelta("x", tool_calls=(ToolCallDelta(0, "1"),)),
        Item("out"),
        action,
        None,
        3,
        1.5,
        "run",
        "inv",
    )
    assert same(event, unpack(pack(event)))


def test_settings_and_tools_come_back():
    value = [
        ModelSettings(temperature=0.5, extra={"a": 1}),
        ToolSpec("t", parameters={"type": "object"}),
    ]
    assert same(value, unpack(pack(value)))


def test_models_keep_the_types_of_what_is_in_them():
    order = Order(
        owner=Derived(number=1, more="x"), item=Item("i"), Count=3, anything=(Base(),), beside={1}
    )
    back = unpack(pack(order))
    assert back == order
    assert type(back.owner) is Derived
    assert back.model_fields_set == order.model_fields_set
    assert back.model_extra == {"beside": {1}}
    assert unpack(pack([Numbers([1, 2]), Empty()])) == [Numbers([1, 2]), Empty()]
    assert vars(unpack(pack(Numbers([1, 2])))) == vars(Numbers([1, 2]))
    assert unpack(pack(unpack(pack(Numbers([1, 2]))))) == Numbers([1, 2])


def test_a_dataclass_that_changes_its_fields_gets_back_what_it_held():
    @register_type(name="test.Doubling")
    @dataclass(frozen=True)
    class Doubling:
        number: int
        scale: InitVar[int] = 2
        digits: str = field(default="", init=False)

        def __post_init__(self, scale):
            object.__setattr__(self, "number", self.number * scale)
            object.__setattr__(self, "digits", str(self.number))

    value = Doubling(4)
    assert (value.number, value.digits) == (8, "8")
    assert unpack(pack(value)) == value


# ---- what is refused


class Foo:
    pass


class Shout(str):
    __slots__ = ()


def test_what_is_not_registered_is_named_with_its_place(says):
    cases = [
        (
            {"cart": [0, 1, 2, Item(Foo())]},
            "value['cart'][3].name is a Foo, which is not registered: register_type(Foo)",
        ),
        (
            (Shout("x"),),
            "value[0] is a Shout, which is not registered: it would come back as a plain str",
        ),
        ({Shout("k"): 1}, "value.keys() is a Shout"),
        (Order(owner=Base(), beside=Foo()), "Order.beside is a Foo"),
        ([len, lambda: 0], "value[0] is a builtin_function_or_method"),
        (
            enum.Enum("Loose", "A").A,
            "value is a Loose, which is not registered: register_type(Loose)",
        ),
    ]
    for value, text in cases:
        with pytest.raises(CheckpointError) as caught:
            pack(value)
        says(caught, text)


def test_a_value_that_holds_itself_is_refused(says):
    items: list[Any] = []
    items.append({"again": items})
    with pytest.raises(CheckpointError) as caught:
        pack([items])
    says(caught, "value[0][0]['again'] is value[0] again")


@pytest.mark.parametrize(
    "wrap",
    [lambda value: [value], lambda value: (value,), lambda value: {1: value}, Item],
    ids=["list", "tuple", "dict", "dataclass"],
)
def test_two_hundred_levels_are_the_bound(wrap, says):
    value = 1
    for _ in range(200):
        value = wrap(value)
    pack(unpack(pack(value)))
    for _ in range(300):
        value = wrap(value)
        if _ in (0, 299):
            with pytest.raises(CheckpointError) as caught:
                pack(value)
            says(caught, "200 levels")


def test_only_values_can_be_registered_and_names_are_taken_once(says):
    @dataclass
    class Other:
        pass

    for cls, name, text in [
        (Foo, None, "must be a dataclass"),
        (Shout, None, "must be a dataclass"),
        ("x", "x", "must be a class"),
        (Other, "test.Item", "test_codec.Item"),
        (Item, "another", "already"),
        (Other, "", "name must be a string"),
    ]:
        with pytest.raises(UsageError) as caught:
            register_type(cls, name)
        says(caught, text)
    assert register_type(Item, "test.Item") is Item
    register_type(Other)
    assert unpack(pack(Other())) == Other()


def test_one_of_many_threads_gets_a_name():
    start = threading.Barrier(8)
    won, refused = [], []

    def try_it(cls):
        start.wait(20)
        try:
            register_type(cls, "test.Contested")
            won.append(cls)
        except UsageError as error:
            refused.append(error)

    threads = [
        threading.Thread(target=try_it, args=(dataclasses.make_dataclass(f"C{number}", ["x"]),))
        for number in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert (len(won), len(refused)) == (1, 7)
    assert type(unpack(pack(won[0](1)))) is won[0]


# ---- classes that change


def as_another(data, cls, name, registered):
    """What the bytes give where the class is another one: the name is exchanged for one of the same
    length.
    """
    from offbook.runtime.codec import packing as codec

    register_type(cls, registered)
    body = data[8:].replace(name.encode(), registered.encode())
    return unpack(data[:4] + codec.crc32(body).to_bytes(4, "big") + body)


def test_fields_may_be_added_with_a_default_and_change_places():
    new = dataclasses.make_dataclass("New", [("price", Any), ("name", Any), ("stock", int, 7)])
    assert as_another(pack(Item("a", 2)), new, "test.Item", "test.It_1") == new(2, "a", 7)

    class NewBase(pydantic.BaseModel):
        number: int
        more: str = "d"

    assert as_another(pack(Base(number=4)), NewBase, "test.Base", "test.Ba_1") == NewBase(number=4)

    class Grown(NamedTuple):
        y: Any
        x: Any

    assert as_another(pack(Point(1, 2)), Grown, "test.Point", "test.Poi_1") == Grown(2, 1)


def test_a_field_that_is_gone_or_has_no_default_is_named(says):
    with pytest.raises(CheckpointError) as caught:
        as_another(
            pack(Item("a", 2)),
            dataclasses.make_dataclass("Less", ["name"]),
            "test.Item",
            "test.It_2",
        )
    says(caught, "test.It_2", "'price'")
    with pytest.raises(CheckpointError) as caught:
        as_another(
            pack(Item("a", 2)),
            dataclasses.make_dataclass("More", ["name", "price", "stock"]),
            "test.Item",
            "test.It_3",
        )
    says(caught, "test.It_3", "stock")


def test_ids_of_things_come_back():
    name = uuid.uuid4()
    assert unpack(pack({name: name})) == {name: name}


def test_a_value_of_a_type_of_another_process_is_handed_on_as_it_was_written():
    program = """
import sys
from dataclasses import dataclass
from offbook.runtime.codec.packing import pack, register_type
@register_type(name="elsewhere.Cart")
@dataclass
class Cart:
    owner: str
    items: list
sys.stdout.buffer.write(pack({"cart": Cart("ada", [1, 2])}))
"""
    data = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True).stdout
    with pytest.raises(CheckpointError, match=r"'elsewhere.Cart' is not registered"):
        unpack(data)
    found = unpack(data, opaque=True)
    assert (found["cart"].type_name, found["cart"].fields) == (
        "elsewhere.Cart",
        {"owner": "ada", "items": [1, 2]},
    )
    assert pack(found) == data
