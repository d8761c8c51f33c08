"""Frozen values whose constructor is made by `quick`: nothing tells them from those of the standard library, but the time."""

import copy
from dataclasses import FrozenInstanceError, dataclass, field, replace

import pytest

from understudy.runtime.quick_init import draft_of, maker, quick


def declared(*, quickly):
    @dataclass(frozen=True, slots=True)
    class Value:
        one: int
        two: int = 2
        many: list = field(default_factory=list)

        def __post_init__(self):
            if self.one < 0:
                raise ValueError("one is below 0")

    return quick(Value) if quickly else Value


@pytest.mark.parametrize("quickly", [True, False])
def test_a_value_is_made_compared_copied_and_refused_as_dataclasses_are(quickly):
    value_class = declared(quickly=quickly)
    value = value_class(1)
    assert type(value) is value_class
    assert value == value_class(1, 2, [])
    assert (replace(value, two=3).two, copy.deepcopy(value)) == (3, value)
    assert value_class(1).many is not value_class(1).many
    with pytest.raises(FrozenInstanceError):
        value.one = 3
    with pytest.raises(ValueError, match="below 0"):
        value_class(-1)
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'one'"):
        value_class()
    with pytest.raises(TypeError, match="unexpected keyword argument 'three'"):
        value_class(1, three=3)


@pytest.mark.parametrize("quickly", [True, False])
def test_an_instance_of_a_subclass_is_one(quickly):
    value_class = declared(quickly=quickly)

    class Loose(value_class):
        pass

    @dataclass(frozen=True, slots=True)
    class Longer(value_class):
        three: int = 3

    loose = Loose(1)
    assert (type(loose), loose.one, loose.two) == (Loose, 1, 2)
    longer = Longer(1, 2, [], 4)
    assert (type(longer), longer.two, longer.three) == (Longer, 2, 4)


@pytest.mark.parametrize("quickly", [True, False])
def test_a_maker_makes_what_the_constructor_does(quickly):
    value_class = declared(quickly=quickly)
    make = maker(value_class)
    made = make(1, two=5)
    assert (type(made), made) == (value_class, value_class(1, 5))
    assert make(1).many is not make(1).many
    with pytest.raises(FrozenInstanceError):
        made.one = 3
    with pytest.raises(ValueError, match="below 0"):
        make(-1)
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'one'"):
        make()
    with pytest.raises(TypeError, match="unexpected keyword argument 'three'"):
        make(1, three=3)


def test_a_draft_is_filled_in_by_its_slots_whatever_stands_in_front_of_one_later():
    value_class = declared(quickly=True)
    draft_class = draft_of(value_class)
    value_class.one = property(lambda value: "in front")
    draft = draft_class()
    draft.one, draft.two, draft.many = 1, 2, []
    assert draft.one == 1
    draft.__class__ = value_class
    assert (type(draft), draft.one, draft.two) == (value_class, "in front", 2)
    with pytest.raises(FrozenInstanceError):
        draft.two = 3
