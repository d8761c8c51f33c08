"""The rules of strict JSON schemas, one by one."""

import copy
import re

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field, create_model

from offbook.actors.tools.strict_schema import ensure_strict_json_schema, has_untyped_property
from offbook.runtime.errors import UsageError

TEXT = {"type": "string"}
CLOSED = {"type": "object", "properties": {}, "additionalProperties": False, "required": []}


def of(node, **more):
    """The strict form of that node, as a property of an object."""
    return ensure_strict_json_schema({"type": "object", "properties": {"p": node}, **more})[
        "properties"
    ]["p"]


def test_an_empty_schema_is_a_closed_empty_object():
    assert ensure_strict_json_schema({}) == CLOSED
    assert ensure_strict_json_schema({"type": "object"}) == CLOSED


@pytest.mark.parametrize("schema", [None, [], "x", True])
def test_what_is_no_dict_is_a_type_error(schema):
    with pytest.raises(TypeError):
        ensure_strict_json_schema(schema)
    with pytest.raises(TypeError, match="#/properties/p"):
        of(schema)


def test_objects_are_closed_and_all_properties_required_in_order():
    node = of({"properties": {"b": TEXT, "a": TEXT}, "required": ["a"]})
    assert (node["additionalProperties"], node["required"]) == (False, ["b", "a"])


@pytest.mark.parametrize("value", [True, None, {}, TEXT, 0])
def test_an_open_object_is_refused(value):
    with pytest.raises(UsageError, match=r"#/properties/p.*additionalProperties"):
        of({"type": "object", "additionalProperties": value})


@pytest.mark.parametrize(
    "wrap",
    [
        lambda n: {"items": n},
        lambda n: {"anyOf": [n]},
        lambda n: {"$defs": {"d": n}},
        lambda n: {"definitions": {"d": n}},
        lambda n: {"properties": {"x": n}},
    ],
)
def test_every_place_is_reached(wrap):
    assert str(CLOSED) in str(of(wrap({"type": "object", "properties": {}})))


def test_one_of_joins_any_of():
    assert of({"anyOf": [TEXT], "oneOf": [{"type": "object"}]}) == {"anyOf": [TEXT, CLOSED]}


def test_all_of_with_one_entry_is_merged_and_the_parents_annotations_win():
    assert of({"description": "mine", "allOf": [{"type": "string", "description": "its"}]}) == {
        "type": "string",
        "description": "mine",
    }
    assert of({"maximum": 1, "allOf": [{"maximum": 1.0}]}) == {"maximum": 1}
    with pytest.raises(UsageError, match="const"):
        of({"const": 1, "allOf": [{"const": True}]})


def test_all_of_with_several_entries_is_recursed():
    assert of({"allOf": [TEXT, {"type": "object"}]}) == {"allOf": [TEXT, CLOSED]}


def test_a_default_of_null_is_removed_and_others_stay():
    assert of({"type": "string", "default": None}) == TEXT
    assert of({"type": "string", "default": ""}) == {"type": "string", "default": ""}


def test_a_lone_reference_stays_and_one_with_annotations_is_inlined():
    defs = {"D": {"type": "object", "description": "its", "properties": {"x": TEXT}}}
    assert of({"$ref": "#/$defs/D"}, **{"$defs": defs}) == {"$ref": "#/$defs/D"}
    assert of({"$ref": "#/$defs/D", "default": None}, **{"$defs": defs}) == {"$ref": "#/$defs/D"}
    assert of({"allOf": [{"$ref": "#/$defs/D"}]}, **{"$defs": defs}) == {"$ref": "#/$defs/D"}
    node = of({"$ref": "#/$defs/D", "description": "mine"}, **{"$defs": defs})
    assert node == {
        "type": "object",
        "description": "mine",
        "properties": {"x": TEXT},
        "additionalProperties": False,
        "required": ["x"],
    }
    with pytest.raises(UsageError, match="alongside the reference"):
        of({"$ref": "#/$defs/D", "type": "string"}, **{"$defs": defs})


def test_pointers_are_unescaped_in_order():
    assert of({"$ref": "#/$defs/a~01~1b", "title": "t"}, **{"$defs": {"a~1/b": TEXT}}) == {
        "type": "string",
        "title": "t",
    }


@pytest.mark.parametrize(
    "reference", ["other.json#/D", "https://example.org/s", "#/$defs/None", "#D", 3]
)
def test_a_reference_that_leads_nowhere_says_which(reference):
    with pytest.raises(UsageError, match=re.escape(str(reference))):
        of({"$ref": reference})


def test_circular_references_say_which():
    with pytest.raises(UsageError, match="circular"):
        of(
            {"$ref": "#/$defs/A"},
            **{"$defs": {"A": {"$ref": "#/$defs/B"}, "B": {"$ref": "#/$defs/A"}}},
        )
    with pytest.raises(UsageError, match=r"circular.*#/\$defs/A"):
        of(
            TEXT,
            **{
                "$defs": {
                    "A": {
                        "type": "object",
                        "properties": {"a": {"$ref": "#/$defs/A", "description": "d"}},
                    }
                }
            },
        )


def test_a_type_that_holds_itself_is_fine():
    class Node(BaseModel):
        next: "Node | None" = None

    assert ensure_strict_json_schema(Node.model_json_schema())["properties"]["next"]["anyOf"][
        0
    ] == {"$ref": "#/$defs/Node"}


@pytest.mark.parametrize(
    "root",
    [
        {"anyOf": [TEXT]},
        {"oneOf": [TEXT]},
        {"type": ["object", "null"]},
        {"type": "null"},
        {"type": "object", "nullable": True},
    ],
)
def test_the_root_is_one_object(root):
    with pytest.raises(UsageError, match="root"):
        ensure_strict_json_schema(root)


def test_too_deep_and_too_many_are_refused():
    deep = TEXT
    for _ in range(102):
        deep = {"type": "array", "items": deep}
    with pytest.raises(UsageError, match="100 levels"):
        of(deep)
    with pytest.raises(UsageError, match="100000 nodes"):
        ensure_strict_json_schema({"properties": dict.fromkeys(map(str, range(100_001)), TEXT)})


def test_the_schema_given_is_not_changed():
    schema = {
        "type": "object",
        "properties": {"p": {"oneOf": [{"type": "object"}], "default": None}},
        "$defs": {"D": {"allOf": [TEXT]}},
    }
    before = copy.deepcopy(schema)
    ensure_strict_json_schema(schema)
    assert schema == before


def test_pydantic_models_as_users_write_them():
    class Free(BaseModel):
        model_config = ConfigDict(extra="allow")

    class Table(BaseModel):
        it: dict[str, int]

    class Maybe(BaseModel):
        name: str | None = None

    for refused in (Free, Table):
        with pytest.raises(UsageError, match="additionalProperties"):
            ensure_strict_json_schema(refused.model_json_schema())
    strict = ensure_strict_json_schema(Maybe.model_json_schema())
    assert (strict["required"], strict["properties"]["name"]["anyOf"]) == (
        ["name"],
        [TEXT, {"type": "null"}],
    )


def test_what_has_no_type_is_found():
    assert has_untyped_property({"type": "object", "properties": {"a": {"title": "A"}}})
    assert has_untyped_property(
        {"type": "object", "properties": {"a": {"type": "array", "items": {}}}}
    )
    assert not has_untyped_property(
        {"type": "object", "properties": {"a": {"type": "array", "items": TEXT}}}
    )


def model_of(fields):
    return create_model("M", **{name: (kind, ...) for name, kind in fields.items()})


LEAVES = st.sampled_from([int, str, bool, int | None, str | None])
TYPES = st.recursive(
    LEAVES,
    lambda inner: (
        inner.map(lambda kind: list[kind])
        | st.dictionaries(st.sampled_from("abc"), inner, max_size=3).map(model_of)
    ),
    max_leaves=6,
)


@settings(max_examples=50, deadline=None)
@given(data=st.data(), kind=TYPES)
def test_a_strict_schema_accepts_what_the_type_produces(data, kind):
    root = create_model("Root", it=(kind, Field(description="it")), maybe=(kind | None, None))
    value = data.draw(st.builds(root, it=st.from_type(kind), maybe=st.none() | st.from_type(kind)))
    strict = ensure_strict_json_schema(root.model_json_schema())
    jsonschema.Draft202012Validator.check_schema(strict)
    jsonschema.validate(value.model_dump(mode="json"), strict)


@settings(max_examples=50, deadline=None)
@given(kind=TYPES)
def test_strict_schemas_are_closed_everywhere_and_strict_already(kind):
    schema = create_model("Root", it=(kind, Field(description="it"))).model_json_schema()
    strict = ensure_strict_json_schema(schema)
    assert ensure_strict_json_schema(strict) == strict

    def check(node):
        if isinstance(node, dict):
            if node.get("type") == "object":
                assert node["additionalProperties"] is False
                assert node["required"] == list(node["properties"])
            for one in node.values():
                check(one)
        elif isinstance(node, list):
            for one in node:
                check(one)

    check(strict)
