"""Values: copies with changes, and fields of pydantic models."""

import pydantic
import pytest

from offbook.runtime import AddressStep, ImagePart, InterruptContext, Message, ToolCall, Usage

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
