"""Strict JSON schemas: the finer points of each rule, and types as people write them."""

import enum
import re
from typing import Annotated, Literal, Optional

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, Field, TypeAdapter, create_model

from offbook.actors.tools.strict_schema import ensure_strict_json_schema
from offbook.runtime.errors import UsageError

TEXT = {"type": "string"}
CLOSED = {"type": "object", "properties": {}, "additionalProperties": False, "required": []}


def of(node, **more):
    """The strict form of that node, as a property of an object."""
    return ensure_strict_json_schema({"type": "object", "properties": {"p": node}, **more})[
        "properties"
    ]["p"]


# --- what is a node ---


@pytest.mark.parametrize(
    ("schema", "where"),
    [
        ({"type": "array", "items": TEXT, "anyOf": ["x"]}, "#/properties/p/anyOf/0"),
        ({"anyOf": TEXT}, "#/properties/p/anyOf"),
        ({"oneOf": "x"}, "#/properties/p/oneOf"),
        ({"allOf": ["x"]}, "#/properties/p/allOf/0"),
        ({"allOf": [TEXT, 3]}, "#/properties/p/allOf/1"),
        ({"$defs": {"D": []}}, r"#/properties/p/\$defs/D"),
        ({"$defs": []}, r"#/properties/p/\$defs"),
        ({"properties": []}, "#/properties/p/properties"),
        ({"properties": {"x": None}}, "#/properties/p/properties/x"),
    ],
)
def test_a_node_that_is_no_dict_is_a_type_error_that_says_where(schema, where):
    with pytest.raises(TypeError, match=where):
        of(schema)


def test_a_reference_to_what_is_no_schema_is_a_type_error():
    with pytest.raises(TypeError, match="must lead to a dict, got 'x'"):
        of({"$ref": "#/$defs/D/type"}, **{"$defs": {"D": {"type": "x"}}})


# --- limits ---


def deep(levels):
    node = TEXT
    for _ in range(levels):
        node = {"type": "array", "items": node}
    return node


def test_a_hundred_levels_are_allowed_and_one_more_is_not():
    assert of(deep(99))["type"] == "array"
    with pytest.raises(UsageError, match="nested more than 100 levels deep"):
        of(deep(100))


def test_so_many_nodes_are_allowed_and_one_more_is_not():
    assert (
        len(
            ensure_strict_json_schema({"properties": dict.fromkeys(map(str, range(99_999)), TEXT)})[
                "required"
            ]
        )
        == 99_999
    )
    with pytest.raises(UsageError, match="more than 100000 nodes, references followed"):
        ensure_strict_json_schema({"properties": dict.fromkeys(map(str, range(100_000)), TEXT)})


def test_what_references_stand_for_counts_each_time_it_is_inlined():
    """Ten levels, each of which is the one below it ten times over: few lines, and ten thousand
    million nodes.
    """
    defs = {"D0": TEXT}
    for level in range(1, 11):
        below = {"$ref": f"#/$defs/D{level - 1}", "description": "d"}
        defs[f"D{level}"] = {
            "type": "object",
            "properties": {str(index): below for index in range(10)},
        }
    with pytest.raises(UsageError, match="nodes, references followed"):
        of({"$ref": "#/$defs/D10", "description": "d"}, **{"$defs": defs})


# --- objects ---


def test_required_is_replaced_and_not_added_to():
    node = of({"type": "object", "properties": {"b": TEXT, "a": TEXT}, "required": ["a", "gone"]})
    assert node["required"] == ["b", "a"]
    assert of({"type": "object", "required": ["gone"]}) == CLOSED


def test_one_of_several_types_may_be_an_object():
    assert (
        of({"type": ["object", "null"], "properties": {"x": TEXT}})["additionalProperties"] is False
    )
    assert of({"type": ["string", "null"]}) == {"type": ["string", "null"]}


def test_what_is_false_already_stays():
    assert of({"type": "object", "additionalProperties": False, "properties": {}}) == CLOSED


def test_an_open_object_within_definitions_and_items_is_refused_too():
    opened = {"type": "object", "additionalProperties": True}
    for node in (
        {"items": opened},
        {"anyOf": [TEXT, opened]},
        {"oneOf": [opened]},
        {"allOf": [opened]},
        {"allOf": [TEXT, opened]},
        {"definitions": {"d": opened}},
    ):
        with pytest.raises(UsageError, match="additionalProperties"):
            of(node)


# --- oneOf and allOf ---


def test_one_of_comes_behind_any_of_and_its_discriminator_goes():
    node = of(
        {
            "anyOf": [TEXT],
            "oneOf": [{"type": "null"}, {"type": "object"}],
            "discriminator": {"propertyName": "k"},
        }
    )
    assert node == {"anyOf": [TEXT, {"type": "null"}, CLOSED]}


@pytest.mark.parametrize(
    ("mine", "its", "same"),
    [
        ({"enum": [1]}, {"enum": [1.0]}, True),
        ({"enum": [1]}, {"enum": [True]}, False),
        ({"const": 0}, {"const": False}, False),
        ({"const": {"a": [1]}}, {"const": {"a": [1]}}, True),
        ({"const": {"a": 1}}, {"const": {"b": 1}}, False),
        ({"enum": [1, 2]}, {"enum": [2, 1]}, False),
        ({"type": "string"}, {"type": "string"}, True),
        ({"const": None}, {"const": False}, False),
    ],
)
def test_a_keyword_on_both_sides_of_all_of_must_be_json_equal(mine, its, same):
    if same:
        assert of({**mine, "allOf": [its]}) == mine
    else:
        with pytest.raises(UsageError, match=r"allOf has .*, but the schema around it has"):
            of({**mine, "allOf": [its]})


@pytest.mark.parametrize(
    "keyword",
    [
        "title",
        "description",
        "default",
        "examples",
        "deprecated",
        "readOnly",
        "writeOnly",
        "$comment",
    ],
)
def test_of_annotations_the_parents_win(keyword):
    assert of({keyword: "mine", "allOf": [{**TEXT, keyword: "its"}]}) == {**TEXT, keyword: "mine"}
    assert of({"allOf": [{**TEXT, keyword: "its"}]}) == {**TEXT, keyword: "its"}


def test_all_of_within_all_of_is_merged_all_the_way():
    assert of(
        {"allOf": [{"allOf": [{"type": "object", "properties": {"x": {"allOf": [TEXT]}}}]}]}
    ) == {**CLOSED, "properties": {"x": TEXT}, "required": ["x"]}


def test_a_null_default_that_comes_out_of_all_of_or_a_reference_goes():
    assert of({"allOf": [{**TEXT, "default": None}]}) == TEXT
    assert of(
        {"$ref": "#/$defs/D", "title": "t"}, **{"$defs": {"D": {**TEXT, "default": None}}}
    ) == {**TEXT, "title": "t"}


@pytest.mark.parametrize("value", [0, False, "", [], {}])
def test_defaults_that_are_something_stay(value):
    assert of({"default": value, **TEXT})["default"] == value


# --- references ---


def test_a_reference_to_a_reference_with_annotations_is_followed():
    defs = {
        "A": {"$ref": "#/$defs/B", "description": "a"},
        "B": {**TEXT, "description": "b", "title": "B"},
    }
    assert of({"$ref": "#/$defs/A", "title": "mine"}, **{"$defs": defs}) == {
        **TEXT,
        "description": "a",
        "title": "mine",
    }


def test_definitions_of_the_old_spelling_are_found():
    assert of({"$ref": "#/definitions/D"}, definitions={"D": {"type": "object"}}) == {
        "$ref": "#/definitions/D"
    }
    assert of({"$ref": "#/definitions/D", "title": "t"}, definitions={"D": {"type": "object"}}) == {
        **CLOSED,
        "title": "t",
    }


def test_a_reference_at_the_root_is_inlined():
    strict = ensure_strict_json_schema(
        {"$ref": "#/$defs/D", "$defs": {"D": {"type": "object", "properties": {"x": TEXT}}}}
    )
    assert (strict["properties"], strict["required"], "$ref" in strict) == (
        {"x": TEXT},
        ["x"],
        False,
    )
    for root in ({"anyOf": [TEXT]}, {"type": ["null", "object"]}):
        with pytest.raises(UsageError, match="root"):
            ensure_strict_json_schema({"$ref": "#/$defs/D", "$defs": {"D": root}})


@pytest.mark.parametrize("reference", ["#", "#/$defs/A"])
def test_a_circle_at_the_root_says_which(reference):
    with pytest.raises(UsageError, match=f"{re.escape(repr(reference))} is circular"):
        ensure_strict_json_schema({"$ref": reference, "$defs": {"A": {"$ref": "#/$defs/A"}}})


# --- types, as people write them ---


class Color(enum.Enum):
    RED = "red"
    ONE = 1


class Inner(BaseModel):
    kind: Literal["inner"] = "inner"
    values: list[int] = []


class Other(BaseModel):
    kind: Literal["other"] = "other"
    color: Color | None = None


class Outer(BaseModel):
    it: Annotated[Inner | Other, Field(discriminator="kind", description="one of them")]
    more: list[Inner | Other] = Field(default_factory=list)
    name: Optional[str] = None  # noqa: UP045 -- as people write it


def test_a_union_with_a_discriminator_becomes_any_of():
    strict = ensure_strict_json_schema(Outer.model_json_schema())
    assert [sorted(one) for one in strict["properties"]["it"]["anyOf"]] == [["$ref"], ["$ref"]]
    assert strict["required"] == ["it", "more", "name"]
    value = Outer(it=Other(color=Color.RED), more=[Inner(values=[1]), Other()])
    jsonschema.validate(value.model_dump(mode="json"), strict)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(
            {"it": {"kind": "inner", "values": [], "extra": 1}, "more": [], "name": None}, strict
        )


LEAVES = st.sampled_from(
    [
        int,
        str,
        bool,
        Color,
        Literal["a", "b"],
        Literal[1, "x"] | None,
        int | None,
        str | None,
        Inner,
        Other,
        Inner | Other,
        Inner | None,
    ]
)


def model_of(fields):
    return create_model(
        "Made",
        **{
            name: (kind, default if default is ... else None)
            for name, (kind, default) in fields.items()
        },
    )


def wider(inner):
    lists = inner.map(lambda kind: list[kind])
    unions = st.tuples(inner, inner).map(
        lambda pair: (
            pair[0] | pair[1]
            if isinstance(pair[0], type)
            and isinstance(pair[1], type)
            # A model without fields has the same JSON as another one whose fields have defaults.
            and all(getattr(one, "model_fields", True) for one in pair)
            else pair[0]
        )
    )
    maybe = inner.map(lambda kind: Optional[kind])  # noqa: UP045 -- of a Literal, too
    models = st.dictionaries(
        st.sampled_from("abc"), st.tuples(inner, st.just(...)), max_size=3
    ).map(model_of)
    return lists | unions | maybe | models


TYPES = st.recursive(LEAVES, wider, max_leaves=8)


@settings(max_examples=100, deadline=None)
@given(data=st.data(), kind=TYPES)
def test_a_strict_schema_accepts_what_the_type_produces(data, kind):
    root = create_model("Root", it=(kind, Field(description="it")), maybe=(Optional[kind], None))  # noqa: UP045 -- of a Literal, too
    value = data.draw(st.builds(root, it=st.from_type(kind), maybe=st.none() | st.from_type(kind)))
    strict = ensure_strict_json_schema(root.model_json_schema())
    jsonschema.Draft202012Validator.check_schema(strict)
    dumped = value.model_dump(mode="json")
    jsonschema.validate(dumped, strict)
    assert (
        TypeAdapter(root)
        .validate_json(value.model_dump_json(), strict=True)
        .model_dump(mode="json")
        == dumped
    ), "and a handoff takes it back"


X = {"type": "object", "properties": {"q": {"type": "integer"}}}
STRICT_X = {**X, "additionalProperties": False, "required": ["q"]}


@pytest.mark.parametrize("beside", [{"type": "object"}, {"description": "d"}])
def test_an_allof_of_one_reference_is_merged_with_the_type_beside_it(beside):
    strict = ensure_strict_json_schema(
        {
            "type": "object",
            "properties": {"a": {**beside, "allOf": [{"$ref": "#/$defs/X"}]}},
            "$defs": {"X": X},
        }
    )
    assert strict["properties"]["a"] == {**STRICT_X, **beside}


def test_another_type_beside_a_reference_is_refused():
    with pytest.raises(UsageError, match=r"alongside the reference .* are type"):
        ensure_strict_json_schema(
            {
                "type": "object",
                "properties": {"a": {"type": "string", "$ref": "#/$defs/X"}},
                "$defs": {"X": X},
            }
        )


def test_what_a_root_says_of_itself_may_stand_beside_its_reference():
    strict = ensure_strict_json_schema(
        {"$schema": "s", "$id": "i", "$ref": "#/$defs/X", "$defs": {"X": X}}
    )
    assert (strict["$schema"], strict["$id"], strict["required"]) == ("s", "i", ["q"])


def test_a_reference_may_be_written_as_a_url():
    strict = ensure_strict_json_schema(
        {
            "type": "object",
            "properties": {"a": {"$ref": "#/$defs/My%20X", "description": "d"}},
            "$defs": {"My X": X},
        }
    )
    assert strict["properties"]["a"] == {**STRICT_X, "description": "d"}


def test_a_map_without_a_type_is_refused():
    with pytest.raises(UsageError, match="additionalProperties"):
        ensure_strict_json_schema(
            {"type": "object", "properties": {"a": {"additionalProperties": {"type": "string"}}}}
        )


def test_a_root_without_a_type_gets_one():
    assert ensure_strict_json_schema({"properties": {"a": {"type": "string"}}})["type"] == "object"
