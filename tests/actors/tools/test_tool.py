"""A tool is a function that a model can call: what it is told of it, and how the arguments get
there.
"""

from __future__ import annotations

import asyncio
import copy
import dataclasses
import functools
import json
import socket
import threading
from collections.abc import Callable
from datetime import date
from enum import Enum
from typing import TYPE_CHECKING, Annotated, Any, Literal, Optional, TypedDict

import pytest
from pydantic import BaseModel, ConfigDict, Field

from offbook.actors.tools.tool import ToolArgumentsError, tool
from offbook.actors.tools.tool_context import ToolContext
from offbook.runtime import ActorSystem, UsageError

if TYPE_CHECKING:
    from offbook.actors.nowhere import NotThere


class Context(ToolContext):
    """Runs what blocks in a thread."""

    __slots__ = ("system",)

    def __init__(self, system=None):
        self.system = system

    async def run_blocking(self, function, *args, **kwargs):
        return await asyncio.to_thread(function, *args, **kwargs)


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Place(BaseModel):
    name: str
    size: int = 0


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")
    name: str


@dataclasses.dataclass
class Point:
    x: int
    y: int = 0


class Trip(TypedDict, total=False):
    to: str
    days: int


@dataclasses.dataclass
class HasSocket:
    it: socket.socket


def invoke(run, made, **arguments):
    return run(made.invoke(Context(), json.dumps(arguments)))


def said(run, made, text):
    """What the model is told of arguments that are not valid."""
    with pytest.raises(ToolArgumentsError) as caught:
        run(made.invoke(Context(), text))
    assert "\n" not in str(caught.value)
    return str(caught.value)


@tool
async def get_weather(
    city: str, days: Annotated[int, Field(ge=0, description="how many")] = 3
) -> str:
    """Tell the weather.

    Args:
        city: where
        days: not this
    """
    return f"{city} {days}"


def test_a_tool_is_told_to_the_model_by_name_docstring_and_signature():
    spec = get_weather.spec
    assert (spec.name, spec.description, spec.strict) == ("get_weather", "Tell the weather.", True)
    assert spec.parameters == {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "city": {"type": "string", "description": "where"},
            "days": {"type": "integer", "minimum": 0, "description": "how many", "default": 3},
        },
        "required": ["city", "days"],
    }
    assert get_weather.spec is spec


def test_a_tool_is_still_the_function(run):
    assert run(get_weather("Paris")) == "Paris 3"
    assert get_weather.__name__ == "get_weather"
    assert get_weather.__doc__.startswith("Tell the weather.")
    assert get_weather.__wrapped__.__name__ == "get_weather"
    assert repr(get_weather) == "<Tool get_weather>"
    assert copy.deepcopy(get_weather) is get_weather


def test_a_tool_cannot_be_changed():
    with pytest.raises(AttributeError, match="all runs share a tool"):
        get_weather.timeout = 3
    with pytest.raises(AttributeError, match="all runs share a tool"):
        del get_weather.name
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = get_weather.nothing


def test_a_function_without_a_proper_name_needs_one():
    with pytest.raises(UsageError, match="Pass another one as name="):
        tool(lambda x: x)


def test_options_are_kept_as_data():
    made = tool(
        name="other",
        description="does it",
        strict=False,
        return_directly=True,
        needs_approval=bool,
        timeout=2.5,
        retries=3,
    )(lambda: 1)
    assert (
        made.name,
        made.description,
        made.strict,
        made.return_directly,
        made.timeout,
        made.retries,
    ) == ("other", "does it", False, True, 2.5, 3)
    assert made.needs_approval is bool
    assert not made.spec.strict


def test_a_def_runs_in_a_worker_thread_and_an_async_def_on_the_loop(run):
    @tool
    def blocking():
        return threading.current_thread()

    @tool
    async def awaiting():
        return threading.current_thread()

    assert invoke(run, blocking) is not threading.main_thread()
    assert invoke(run, awaiting) is threading.main_thread()


def test_a_tool_runs_beside_a_living_actor_system(run):
    async def named():
        async with ActorSystem() as system:
            assert await tool(name="same")(lambda x: x).invoke(Context(system), '{"x": [1]}') == [1]

    run(named())


def test_a_def_that_returns_an_awaitable_is_awaited(run):
    async def later():
        return 7

    assert invoke(run, tool(name="it")(lambda: later())) == 7


@pytest.mark.parametrize(
    ("annotation", "given", "received"),
    [
        (int, "5", 5),
        (Optional[str], None, None),  # noqa: UP045
        (Literal["a", "b"], "b", "b"),
        (Colour, "red", Colour.RED),
        (Place, {"name": "x"}, Place(name="x")),
        (Point, {"x": 1}, Point(1)),
        (Trip, {"to": "x"}, {"to": "x"}),
        (list[Trip], [{"days": "2"}], [{"days": 2}]),
        (list[int], ["1"], [1]),
        (dict[str, int], {"a": 1}, {"a": 1}),
        (set[int], [1, 1], {1}),
        (tuple[int, str], [1, "a"], (1, "a")),
        (date, "2024-02-29", date(2024, 2, 29)),
        (Annotated[str, "about it"], "x", "x"),
        (int | str, "x", "x"),
        (Any, {"a": [None]}, {"a": [None]}),
    ],
)
def test_arguments_arrive_as_the_types_of_the_signature(run, annotation, given, received):
    async def take(it):
        return it

    take.__annotations__["it"] = annotation
    assert invoke(run, tool(take), it=given) == received


def test_the_text_in_annotated_describes_the_argument():
    @tool
    def f(a: Annotated[str, "this one"]):
        """Do it.

        :param a: not this
        """

    assert f.spec.parameters["properties"]["a"]["description"] == "this one"


def test_each_kind_of_parameter_is_passed_as_it_must_be(run):
    @tool
    def f(a: int, context: ToolContext, b: int = 2, /, c: int = 3, *rest: int, d: int = 4):
        return a, b, c, rest, d, isinstance(context, Context)

    assert invoke(run, f, a=1) == (1, 2, 3, (), 4, True)
    assert invoke(run, f, a=1, rest=[8, "9"], d=5) == (1, 2, 3, (8, 9), 5, True)
    assert invoke(run, f, a=1, c=7) == (1, 2, 7, (), 4, True)
    assert list(f.spec.parameters["properties"]) == ["a", "b", "c", "rest", "d"]


def test_names_that_mean_something_to_others_are_names_like_any(run):
    async def f(function: int, schema: int, model_config: int, _hidden: int, copy: int):
        return function, schema, model_config, _hidden, copy

    assert invoke(run, tool(f), function=1, schema=2, model_config=3, _hidden=4, copy=5) == (
        1,
        2,
        3,
        4,
        5,
    )


def test_a_default_of_pydantic_is_a_default(run):
    async def f(
        n: int = Field(5, ge=1, description="n"),
        names: list = Field(default_factory=list),  # noqa: B008 -- pydantic's way
    ):
        return n, names

    made = tool(f)
    assert invoke(run, made) == (5, [])
    assert made.spec.parameters["properties"]["n"]["description"] == "n"
    assert "greater than or equal to 1" in said(run, made, '{"n": 0}')


def test_the_context_is_given_in_all_spellings(run):
    async def as_string(a: int, c: "ToolContext"): return c  # noqa: UP037 # fmt: skip

    async def optional(a: int, c: ToolContext | None = None): return c  # fmt: skip

    async def old_optional(a: int, c: Optional[ToolContext] = None): return c  # noqa: UP045 # fmt: skip

    async def annotated(c: Annotated[ToolContext, "it"], a: int): return c  # fmt: skip

    async def keyword(a: int, *, c: Context): return c  # fmt: skip

    for function in (as_string, optional, old_optional, annotated, keyword):
        made = tool(function)
        assert isinstance(invoke(run, made, a=1), Context), function
        assert list(made.spec.parameters["properties"]) == ["a"]
        assert "unknown argument: c" in said(run, made, '{"a": 1, "c": 2}')


def test_a_context_that_is_imported_for_the_type_checker_alone_is_one(run):
    names = {}
    exec("async def f(a: 'int', c: 'nowhere.ToolContext | None' = None): return c", names)
    assert isinstance(invoke(run, tool(names["f"]), a=1), Context)


def test_types_of_the_function_around_are_found():
    class Local(BaseModel):
        n: int

    @tool
    def f(x: Local, y: list[Local]): ...

    @tool(name="g")
    def g(x: Local | None = None): ...

    assert f.spec.parameters["properties"]["x"] == {"$ref": "#/$defs/Local"}
    assert g.spec.name == "g"


def test_partials_methods_and_objects_can_be_tools(run):
    class Shop:
        def buy(self, what: str) -> str:
            """Buy it."""
            return f"bought {what}"

        async def __call__(self, what: str) -> str:
            """Call it."""
            return f"called {what}"

    def add(a: int, b: int) -> int:
        """Add them."""
        return a + b

    assert invoke(run, tool(Shop().buy), what="a") == "bought a"
    called = tool(name="shop")(Shop())
    assert (invoke(run, called, what="a"), called.description) == ("called a", "Call it.")
    part = tool(functools.partial(add, b=1))
    assert (
        invoke(run, part, a=1),
        part.name,
        part.description,
        list(part.spec.parameters["properties"]),
    ) == (2, "add", "Add them.", ["a"])


def test_strict_is_given_up_where_the_schema_does_not_allow_it(run):
    def free(x): ...
    def table(x: dict[str, int]): ...
    def loose(x: Open): ...
    def bare(x: list): ...

    for function in (free, table, loose, bare):
        made = tool(strict=True)(function)
        assert made.strict
        assert not made.spec.strict
        assert "unknown argument: y" in said(run, made, '{"x": {"name": "a"}, "y": 1}')


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "city: field required"),
        ("{}", "city: field required"),
        ("[1]", "must be a JSON object (got [1])"),
        ("null", "must be a JSON object (got null)"),
        (
            '{"city": "a"',
            "must be a JSON object, and is not valid JSON (EOF while parsing an object at line 1 column 12)",
        ),
        ('{"days": "x"}', 'city: field required; days: input should be a valid integer (got "x")'),
        ('{"city": "a", "days": -1}', "days: input should be greater than or equal to 0 (got -1)"),
        ('{"city": "a", "z": 1, "y": 2}', "unknown argument: z, y (known: city, days)"),
        ('{"city": ["é\\n"]}', 'city: input should be a valid string (got ["é\\n"])'),
    ],
)
def test_the_model_is_told_in_one_line_what_is_wrong_with_its_arguments(run, text, complaint):
    assert said(run, get_weather, text) == f"arguments of get_weather are not valid: {complaint}"


def test_what_the_model_is_told_has_an_end(run):
    async def f(a: list[int]): ...

    text = said(run, tool(f), json.dumps({"a": ["x" * 1000] * 100}))
    assert "and 90 more" in text
    assert len(text) < 2000


def test_an_error_of_the_function_is_its_own(run):
    async def f(a: int):
        Place.model_validate({})

    with pytest.raises(ValueError, match="Place") as caught:
        invoke(run, tool(f), a=1)
    assert not isinstance(caught.value, ToolArgumentsError)


def generator(a: int):
    yield a


def several(**options: int): ...
def with_socket(connection: socket.socket): ...
def with_lock(a: int, guard: threading.Lock): ...
def with_callback(done: Callable[[], None]): ...
def with_dataclass(it: HasSocket): ...
def with_list(them: list[socket.socket]): ...
def not_there(it: NotThere): ...
def not_there_either(it: list["Nowhere"]): ...  # noqa: F821, UP037
def several_contexts(*them: ToolContext): ...


class Thing:
    def method(self, a: int): ...


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (generator, ["generator", "generator"]),
        (several, ["several", "**options"]),
        (with_socket, ["with_socket", "parameter connection", "socket"]),
        (with_lock, ["with_lock", "parameter guard", "lock"]),
        (with_callback, ["with_callback", "parameter done", "Callable"]),
        (with_dataclass, ["with_dataclass", "parameter it", "HasSocket"]),
        (with_list, ["with_list", "parameter them", "socket"]),
        (not_there, ["not_there", "parameter it", "NotThere"]),
        (not_there_either, ["not_there_either", "parameter it", "Nowhere"]),
        (several_contexts, ["several_contexts", "them"]),
        (Thing.method, ["method", "without its object"]),
        (Thing, ["Thing", "class"]),
        (get_weather, ["get_weather", "already"]),
        ("name", ["must be a function, got 'name'", "@tool(name=...)"]),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_a_signature_that_cannot_be_a_schema_is_refused_at_once(function, words):
    with pytest.raises(UsageError) as caught:
        tool(function)
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize(
    "options",
    [
        {"timeout": 0},
        {"retries": -1},
        {"name": "a b"},
        {"name": ""},
        {"name": "x" * 65},
        {"needs_approval": "yes"},
        {"nmae": "x"},
    ],
)
def test_options_that_make_no_sense_are_refused(options):
    with pytest.raises(UsageError, match="tool"):
        tool(**options)(lambda: 1)


def test_concurrent_calls_share_nothing(run):
    async def main():
        results = await asyncio.gather(
            *(get_weather.invoke(Context(), json.dumps({"city": str(n)})) for n in range(50))
        )
        assert results == [f"{n} 3" for n in range(50)]

    run(main())


def test_what_a_model_is_not_told_of_a_tool_is_a_warning(caplog):
    def bare(city, days: int):
        return city

    tool(bare)
    said = [record.getMessage() for record in caplog.records]
    assert len(said) == 2
    assert "Tool bare has no docstring" in said[0]
    assert "without types" in said[1]
    assert said[1].endswith("city. Annotate them.")
    caplog.clear()
    tool(description="Says it.")(get_weather.__wrapped__)
    tool(name="shown")(lambda x: x)
    assert caplog.records == []


def test_a_context_without_an_annotation_is_refused():
    def asks(context):
        """Ask."""

    with pytest.raises(
        UsageError, match=r"tool asks: parameter context has no annotation.*ToolContext"
    ):
        tool(asks)
