"""What is written comes back equal, made of its fields and of nothing that its class would do; or
it is refused, with the path of what is in the way.
"""

import dataclasses
import enum
import math
import threading
from dataclasses import InitVar, dataclass, field
from decimal import Decimal
from functools import cached_property
from typing import Any, Generic, NamedTuple, TypeVar
from zlib import crc32

import msgpack
import pydantic
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from offbook.runtime.codec.kept_values import check_values
from offbook.runtime.codec.packing import pack, register_type, unpack
from offbook.runtime.errors import CheckpointError, UsageError

T = TypeVar("T")
CALLS: list[str] = []


@register_type(name="values.Price")
class Price(pydantic.BaseModel):
    """Takes euros and keeps cents: validated twice it is a hundred times as much."""

    model_config = pydantic.ConfigDict(extra="allow", validate_assignment=True)

    cents: int = pydantic.Field(alias="euros")
    made: int = pydantic.Field(default_factory=lambda: CALLS.append("factory") or len(CALLS))
    note: Any = None
    _seen: Any = pydantic.PrivateAttr(default_factory=lambda: CALLS.append("private") or [])
    _unset: int = pydantic.PrivateAttr()

    @pydantic.field_validator("cents")
    @classmethod
    def in_cents(cls, value):
        CALLS.append("validator")
        return value * 100

    @pydantic.computed_field
    @property
    def euros_again(self) -> float:
        return self.cents / 100

    @cached_property
    def slow(self):
        return object()

    def model_post_init(self, context):
        super().model_post_init(context)
        CALLS.append("post_init")


@register_type(name="values.Line")
@dataclass
class Line:
    price: Any
    count: int = 1
    doubled: int = field(default=0, init=False)
    made: list[Any] = field(default_factory=lambda: CALLS.append("list") or [])
    scale: InitVar[int] = 2
    hint: Any = field(default=None, kw_only=True, compare=False)

    def __post_init__(self, scale):
        CALLS.append("line")
        if self.count < 0:
            raise ValueError("fewer than none")
        self.made.append(scale)
        self.doubled = self.count * scale
        self.beside = "beside"

    @cached_property
    def slow(self):
        return object()


@register_type(name="values.Order")
@dataclass(frozen=True, slots=True)
class Order:
    lines: list[Any]

    def __post_init__(self):
        CALLS.append("order")


@register_type(name="values.Box")
@dataclass
class Box(Generic[T]):
    item: T


class BoxModel(pydantic.BaseModel, Generic[T]):
    item: T


register_type(BoxModel[int], name="values.BoxModel[int]")


@register_type(name="values.Needs")
@dataclass
class Needs:
    number: int
    scale: InitVar[int]

    def __post_init__(self, scale):
        self.number *= scale


class Slotted:
    __slots__ = ("_inner",)


@register_type(name="values.Below")
@dataclass(slots=True)
class Below(Slotted):
    number: int


@register_type(name="values.Pair")
class Pair(NamedTuple):
    one: Any
    two: Any = 0


@pytest.fixture(autouse=True)
def nothing_was_called():
    CALLS.clear()


def again(value):
    """What comes back, and that nothing of the class was called for it."""
    before = [*CALLS]
    back = unpack(pack(value))
    assert before == CALLS
    assert type(back) is type(value)
    return back


def sealed(body):
    return b"\xc1ob\x01" + crc32(body).to_bytes(4, "big") + body


def test_a_model_comes_back_by_its_fields_and_nothing_of_it_runs_again():
    price = Price(euros=3, extra=(1,))
    price._seen.append("x")
    price.slow  # noqa: B018 -- so that it is in the instance
    back = again(price)
    assert back == price
    assert (back.cents, back.made, back._seen, back.model_extra, back.euros_again) == (
        300,
        price.made,
        ["x"],
        {"extra": (1,)},
        3,
    )
    assert back.model_fields_set == price.model_fields_set == {"cents", "extra"}
    assert "slow" not in vars(back)
    assert back.__pydantic_private__ == price.__pydantic_private__
    assert again(again(back)) == price


def test_a_model_that_breaks_its_own_rules_is_kept_as_it_is():
    price = Price.model_construct(cents="many", made=None)
    assert again(price) == price
    assert again(price).cents == "many"


def test_a_dataclass_comes_back_by_its_fields_and_nothing_of_it_runs_again():
    line = Line(Decimal("1.50"), 4, hint="h")
    line.slow  # noqa: B018 -- so that it is in the instance
    line.count = -7
    back = again(Order([line])).lines[0]
    assert back == line
    assert (back.made, back.doubled, back.hint, back.beside, back.count) == (
        [2],
        8,
        "h",
        "beside",
        -7,
    )
    assert vars(back) == {name: value for name, value in vars(line).items() if name != "slow"}


def test_classes_that_no_constructor_could_make_again_come_back():
    assert again(Needs(3, 5)) == Needs(15, 1)
    assert again(Box[int](3)) == Box(3)
    assert again(BoxModel[int](item=3)) == BoxModel[int](item=3)
    with pytest.raises(CheckpointError, match="BoxModel"):
        pack(BoxModel[str](item="x"))
    below = Below(1)
    below._inner = [1]
    assert again(below)._inner == [1]
    assert not hasattr(again(Below(1)), "_inner")


def test_what_an_instance_has_lost_is_refused(says):
    line, price, below = Line(1), Price(euros=1), Below(1)
    del line.price, price.__dict__["note"], below.number
    unseen = Price(euros=1)
    del unseen.__pydantic_private__["_seen"]
    for value, text in [
        ([line], "value[0].price is not set"),
        (price, "Price.note is not set"),
        (Order([below]), "Order.lines[0].number is not set"),
        (unseen, "'_seen'"),
        (tuple.__new__(Pair, (1, 2, 3)), "must have one value for each field"),
    ]:
        with pytest.raises(CheckpointError) as caught:
            pack(value)
        says(caught, text)


@pytest.mark.parametrize(
    ("value", "path"),
    [
        (Order([0, 1, Line(object())]), "Order.lines[2].price"),
        (Order([Price(euros=1, more={"a": object()})]), "Order.lines[0].more['a']"),
        ({"k": bytearray(b"x")}, "value['k']"),
        ([Pair(1, memoryview(b"x"))], "value[0].two"),
        ([[msgpack.Timestamp(1)]], "value[0][0]"),
        ([b"\xc4", [msgpack.ExtType(2, b""), 1]], "value[1][0]"),
        (Line(1, hint={"deep": threading.Lock()}), "Line.hint['deep']"),
        ({(bytearray,): 1}, "value.keys()[0]"),
        ([{k * (2**61 - 1): k for k in range(1000)}], "value[0]"),
        (
            Order([{float(2**k) for k in range(1000)} | {2**k for k in range(7000)}]),
            "Order.lines[0]",
        ),
    ],
    ids=lambda given: given if isinstance(given, str) else "",
)
def test_what_would_not_come_back_is_refused_with_its_path(value, path):
    with pytest.raises(CheckpointError) as caught:
        pack(value)
    assert caught.value.path == path
    assert str(caught.value).startswith(path)
    with pytest.raises(CheckpointError, match="session value 'order'") as caught:
        check_values({"order": value})
    assert path in str(caught.value)


def test_a_class_whose_state_is_not_known_is_not_registered(says):
    @dataclass
    class Field:
        number: int

        @property
        def number(self):
            return 1

        @number.setter
        def number(self, value):
            pass

    with pytest.raises(UsageError) as caught:
        register_type(Field)
    says(caught, "'number'", "property")
    with pytest.raises(UsageError) as caught:
        register_type(dataclasses.make_dataclass("Local", ["x"], bases=(threading.local,)))
    says(caught, "more state than its fields")


def test_a_member_that_its_enum_does_not_list_is_refused():
    @register_type(name="values.Loose")
    class Loose(enum.Enum):
        A = 1

        @classmethod
        def _missing_(cls, value):
            made = object.__new__(cls)
            made._value_, made._name_ = value, "B"
            return made

    assert again(Loose.A) is Loose.A
    with pytest.raises(CheckpointError, match="no member 'B'"):
        pack(Loose(7))


BODY = pack(Price(euros=3))[8:]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"values.Price\0cents\0made", b"values.Price\0cants\0made"),
        (b"values.Price\0cents\0made", b"values.Price\0cents\0note"),
        (b"\xa5_seen", b"\xa5_sean"),
        (b"\xa5_seen", b"\xa5__d__"),
        (b"\x91\xa5cents", b"\x91\xc0"),
    ],
)
def test_forged_models_are_refused(old, new):
    assert old in BODY
    with pytest.raises(CheckpointError):
        unpack(sealed(BODY.replace(old, new)))


@pytest.mark.parametrize("more", [{"price": 1}, {"__class__": 1}, {1: 2}, [1], None])
def test_forged_dataclasses_are_refused(more):
    body = msgpack.packb(
        [
            msgpack.ExtType(1, b"values.Line\0price\0count\0doubled\0made\0hint"),
            1,
            1,
            1,
            [],
            None,
            more,
        ]
    )
    with pytest.raises(CheckpointError):
        unpack(sealed(body))


# ---- equal, or refused


class Loose(NamedTuple):
    x: int


LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=3),
    st.binary(max_size=3),
    st.binary(max_size=3).map(bytearray),
    st.binary(max_size=3).map(memoryview),
    st.decimals(allow_nan=True),
    st.sampled_from(
        [
            object(),
            msgpack.ExtType(40, b"\xc4"),
            Loose(1),
            type("Text", (str,), {})("x"),
            type("Int", (int,), {})(1),
        ]
    ),
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(
            st.booleans() | st.integers(-2, 2) | st.floats(-1, 1) | st.text(max_size=1),
            inner,
            max_size=3,
        ),
        st.builds(lambda price, hint: Line(price, hint=hint), inner, inner),
        st.builds(lambda note, more: Price(euros=1, note=note, more=more), inner, inner),
        st.builds(Pair, inner, inner),
    ),
    max_leaves=8,
)


def form(value):
    """What tells two values apart, and no other two."""
    if isinstance(value, float):
        return "nan" if math.isnan(value) else value.hex()
    if isinstance(value, list | tuple):
        return [type(value), *map(form, value)]
    if isinstance(value, dict):
        return [dict, *((form(key), form(item)) for key, item in value.items())]
    if isinstance(value, Line):
        return form(dict(sorted(vars(value).items())))
    if isinstance(value, pydantic.BaseModel):
        return [
            form(vars(value)),
            form(value.__pydantic_extra__),
            form(value.__pydantic_private__),
            value.model_fields_set,
        ]
    if isinstance(value, Decimal):
        return str(value)
    return type(value), value


@settings(max_examples=200, deadline=None)
@given(VALUES)
def test_a_value_comes_back_with_its_types_or_is_refused(value):
    try:
        data = pack(value)
    except CheckpointError as error:
        assert error.path
        return
    assert form(unpack(data)) == form(value)
