"""Values: copies with changes, and fields of pydantic models."""

import gc
import types
import typing

import msgspec
import pydantic
import pytest

from offbook.runtime import AddressStep, ImagePart, InterruptContext, Message, ToolCall, Usage
from offbook.runtime.agent.history import Entry
from offbook.runtime.data.run_path import SharedPath
from offbook.runtime.data.value import Value

FLAT = (str, bytes, bool, int, float, types.NoneType, SharedPath)

CALL = ToolCall("1", "pay", "{}")


class Kept(pydantic.BaseModel):
    message: Message
    waits: InterruptContext | None = None


KEPT = Kept(
    message=Message(
        "assistant", (ImagePart(url="http://x/y.png"),), (CALL,), usage=Usage(1, requests=2)
    ),
    waits=InterruptContext("a", (AddressStep("agent", "A"),), info={"euros": 5}),
)


def test_a_value_is_a_field_of_a_pydantic_model():
    assert Kept.model_validate(KEPT.model_dump()) == KEPT
    assert Kept.model_validate_json(KEPT.model_dump_json()) == KEPT
    assert "tool_calls" in Kept.model_json_schema()["properties"]["message"]["properties"]


def test_values_inside_of_values_are_serialized_as_tables():
    outer = InterruptContext("b", (), parent=KEPT.waits)
    dumped = Kept(message=KEPT.message, waits=outer).model_dump(mode="json")
    assert dumped["waits"]["parent"]["address"] == [{"kind": "agent", "name": "A", "call_id": None}]


def test_pydantic_refuses_a_table_with_other_fields():
    with pytest.raises(pydantic.ValidationError, match="roles"):
        Kept.model_validate({"message": {"role": "user", "roles": 1}})


def test_a_copy_has_the_changes_and_nothing_else():
    assert CALL.replace(name="ship") == ToolCall("1", "ship", "{}")
    assert CALL.name == "pay"
    with pytest.raises(AttributeError):
        CALL.name = "ship"


def below(cls):
    return {cls, *(deeper for each in cls.__subclasses__() for deeper in below(each))}


UNTRACKED = sorted(
    {
        cls
        for cls in (Entry, *below(Value))
        if cls.__module__.startswith("offbook.") and not cls.__struct_config__.gc
    },
    key=lambda cls: cls.__name__,
)


def is_flat(hint):
    """Whether no value of that type can be part of a reference cycle."""
    origin = typing.get_origin(hint)
    if origin is typing.Literal:
        return True
    if origin in (tuple, types.UnionType, typing.Union):
        return all(is_flat(each) for each in typing.get_args(hint) if each is not ...)
    return hint in FLAT or (
        isinstance(hint, type)
        and issubclass(hint, msgspec.Struct)
        and not hint.__struct_config__.gc
    )


@pytest.mark.parametrize("cls", UNTRACKED, ids=lambda cls: cls.__name__)
def test_a_value_that_the_collector_does_not_look_at_cannot_be_in_a_cycle(cls):
    hints = typing.get_type_hints(cls)
    assert [name for name in cls.__struct_fields__ if not is_flat(hints[name])] == []


def test_the_collector_does_not_look_at_messages_or_a_tuple_of_them():
    messages = (Message("user", (ImagePart(url="u"),)), Message.assistant("", (CALL,)))
    gc.collect()
    for value in (CALL, *messages, messages, messages[0].content):
        assert not gc.is_tracked(value)
