"""What an agent can call.

Owns: `Tool`, and `@tool`, which makes one of a function. A tool is shared by all runs that use it: it is never changed, and holds nothing of a call.
Timeout, retries and approval are data here; the code that calls the tool carries them out.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import WRAPPER_ASSIGNMENTS, partial
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, ParamSpec, Protocol, Self, TypeAlias, TypedDict, TypeVar, Unpack, overload

from ...runtime.errors import ToolError, UsageError
from ...runtime.models.protocol import ToolSpec
from ...runtime.option_names import meant
from .docstrings import Docstring, read_docstring
from .signature import Signature, read_signature
from .strict_schema import ensure_strict_json_schema, has_untyped_property
from .tool_context import ToolContext
from .tool_guardrail import ToolInputGuardrail, ToolOutputGuardrail
from .tool_result import result_of

if TYPE_CHECKING:
    from .function_schema import FunctionArguments

__all__ = ["FunctionTool", "Tool", "ToolArgumentsError", "tool"]

P = ParamSpec("P")
R = TypeVar("R")

Approval: TypeAlias = bool | Callable[[ToolContext, dict[str, Any]], bool | Awaitable[bool]]
"""Whether a call needs approval, or a function of its context and arguments that says so."""

_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")


class ToolArgumentsError(ToolError):
    """The model's arguments are not valid. The text is one line, for the model: nothing has been called."""


class _Arguments(Protocol):
    schema: dict[str, object]

    def parse(self, text: str) -> object: ...


class Tool:
    """Something that an agent can call, made by `@tool` or by hand.

    By hand, `parameters` is a JSON schema, or a pydantic model, a dataclass or a TypedDict; `call(context, arguments)`, def or async def, is given a
    dict or an instance of it. Of a JSON schema only is checked that what is required is there and what is not allowed is not: the rest is up to `call`.

    `strict` (the default) means: strict where the schema allows it. Where it does not, for a `dict[str, int]`, or for a parameter without annotation, the
    model is shown the schema as it is, and `spec.strict` is False; the arguments are validated all the same. A plain def runs in a worker thread.

    `timeout` is how many seconds each attempt may take. An `async def` is ended then. A thread cannot be: what a plain def does, counted from when its thread
    has begun it, is not waited for any longer; `context.cancelled` tells it so, and the model is told that it may have been done all the same.
    """

    plays_agent: ClassVar[bool] = False
    """Whether a call of it is the work of an agent, which the run knows of."""

    name: str
    description: str
    strict: bool
    return_directly: bool
    needs_approval: Approval
    timeout: float | None
    retries: int
    input_guardrails: Sequence[ToolInputGuardrail]
    output_guardrails: Sequence[ToolOutputGuardrail]
    _call: Callable[..., object]
    _blocking: bool

    def __init__(
        self,
        *,
        name: str,
        description: str = "",
        parameters: Mapping[str, object] | type | None = None,
        call: Callable[[ToolContext, Any], object],
        strict: bool = True,
        return_directly: bool = False,
        needs_approval: Approval = False,
        timeout: float | None = None,
        retries: int = 0,
        input_guardrails: Iterable[ToolInputGuardrail] = (),
        output_guardrails: Iterable[ToolOutputGuardrail] = (),
    ) -> None:
        if not callable(call):
            msg = f"tool {name}: call={call!r} cannot be called; give a def or async def that takes (context, arguments)."
            raise UsageError(msg)
        own = self.__dict__
        own["_parameters"] = parameters
        own["_call"] = call
        own["_blocking"] = not _is_async(call)
        own.update(name=name, description=description, strict=strict, return_directly=return_directly)
        own.update(needs_approval=needs_approval, timeout=timeout, retries=retries)
        own.update(input_guardrails=tuple(input_guardrails), output_guardrails=tuple(output_guardrails))
        _check_options(self)
        if not (parameters is None or isinstance(parameters, Mapping)):
            _ = self._arguments  # whether it can be a schema is said here, not in the middle of a run

    def __setattr__(self, name: str, value: object) -> None:
        msg = f"tool {self.name}: {name} cannot be set: a tool is shared by all runs that use it. Make another one."
        raise AttributeError(msg)

    def __delattr__(self, name: str) -> None:
        self.__setattr__(name, None)

    def __repr__(self) -> str:
        return f"<Tool {self.name}>"

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        return self

    @property
    def blocks(self) -> bool:
        """Whether it is a plain def, which runs in a worker thread."""
        return self._blocking

    @property
    def spec(self) -> ToolSpec:
        """The tool, as the model is told of it. Made once, when it is first asked for."""
        known: ToolSpec | None = self.__dict__.get("_spec")
        if known is None:
            # Two threads may both make it: they make the same, and the first one stays.
            known = self.__dict__.setdefault("_spec", self._make_spec())
        return known

    async def invoke(self, context: ToolContext, arguments: str) -> object:
        """Call it with the arguments in that JSON text. Returns what it returns; raises `ToolArgumentsError`, or what it raises."""
        value = self._parse(arguments)
        return await result_of(context, await context.run_blocking(self._call, context, value) if self._blocking else self._call(context, value))

    def check_arguments(self, arguments: str) -> None:
        """Raise `ToolArgumentsError`, if it could not be called with them."""
        self._parse(arguments)

    def _parse(self, text: str) -> Any:
        if text and text.isspace():
            text = ""
        try:
            return self._arguments.parse(text)
        except ValueError as error:
            from .function_schema import explain  # noqa: PLC0415 -- brings pydantic

            msg = f"arguments of {self.name} are not valid: {explain(error, self._arguments.schema)}"
            raise ToolArgumentsError(msg) from error

    @property
    def _arguments(self) -> Any:
        known: _Arguments | None = self.__dict__.get("_made_arguments")
        return known if known is not None else self.__dict__.setdefault("_made_arguments", self._make_arguments())

    def _make_arguments(self) -> _Arguments:
        from .function_schema import SchemaArguments, TypeArguments  # noqa: PLC0415 -- brings pydantic

        parameters = self.__dict__["_parameters"]
        if parameters is None or isinstance(parameters, Mapping):
            return SchemaArguments(parameters or {}, self.name)
        return TypeArguments(parameters, self.name)

    def _make_spec(self) -> ToolSpec:
        schema = self._arguments.schema
        if self.strict and not has_untyped_property(schema):
            try:
                return ToolSpec(self.name, self.description, ensure_strict_json_schema(schema), strict=True)
            except UsageError:  # strict where the schema allows it: here it does not
                return ToolSpec(self.name, self.description, schema, strict=False)
        return ToolSpec(self.name, self.description, schema, strict=False)


class _Settings(TypedDict, total=False):
    """What `@tool` takes beside a name and a description."""

    strict: bool
    return_directly: bool
    needs_approval: Approval
    timeout: float | None
    retries: int
    input_guardrails: Iterable[ToolInputGuardrail]
    output_guardrails: Iterable[ToolOutputGuardrail]


class _Options(_Settings, total=False):
    name: str | None
    description: str | None


class FunctionTool(Tool, Generic[P, R]):
    """What `@tool` makes: a tool that is a function, and can still be called as one."""

    __name__: str
    __wrapped__: Callable[P, R]

    def __init__(
        self,
        function: Callable[P, R],
        *,
        local_names: Mapping[str, Any],
        name: str | None = None,
        description: str | None = None,
        **options: Unpack[_Settings],
    ) -> None:
        own_name = name or _name_of(function)
        if isinstance(function, type) or inspect.isgeneratorfunction(function):
            kind = "a class" if isinstance(function, type) else "a plain generator"
            msg = f"tool {own_name}: {function!r} is {kind}; a tool is a function that returns its result, or an async generator, which yields it in pieces."
            raise UsageError(msg)
        own = self.__dict__
        own["_function"] = function
        super().__init__(name=own_name, description=description or "", call=function, **options)  # type: ignore[arg-type]  # called by `invoke` below alone
        signature = read_signature(function, own_name, local_names)
        own["_signature"] = signature
        if description is None:
            own.pop("description")  # from here on it is the property below that answers
        own["__wrapped__"] = function
        for key in WRAPPER_ASSIGNMENTS:
            if key != "__annotations__" and (value := getattr(function, key, None)) is not None:
                own[key] = value
        own.setdefault("__name__", own_name)
        if not signature.is_plain:
            _ = self._arguments  # a signature that cannot be a schema is said here, not in the middle of a run

    if not TYPE_CHECKING:  # to a type checker, an attribute that is misspelt stays unknown

        def __getattr__(self, name: str) -> str:
            if name == "description":  # read from the docstring when it is asked for, and then kept
                return self.__dict__.setdefault("description", self._read_docstring().description)
            msg = f"{type(self).__name__!r} object has no attribute {name!r}"
            raise AttributeError(msg)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function itself, as if it were no tool."""
        result: R = self.__dict__["_function"](*args, **kwargs)
        return result

    async def invoke(self, context: ToolContext, arguments: str) -> object:
        values = self._parse(arguments)
        own = self.__dict__
        signature: Signature = own["_signature"]
        for key in signature.contexts:
            values[key] = context
        function = own["_function"]
        args: list[object] = []
        if signature.positional:
            args, values = self._arguments.ordered(values)
        # Bound here, so that an argument may be called `function` without meeting a parameter of run_blocking.
        return await result_of(context, await context.run_blocking(partial(function, *args, **values)) if own["_blocking"] else function(*args, **values))

    def _read_docstring(self) -> Docstring:
        function = self.__dict__["_function"]
        if isinstance(function, partial):
            function = function.func
        text = function.__doc__ if inspect.isroutine(function) else type(function).__call__.__doc__ or type(function).__doc__
        return read_docstring(text)

    def _make_arguments(self) -> FunctionArguments:
        from .function_schema import FunctionArguments  # noqa: PLC0415 -- brings pydantic

        return FunctionArguments(self.__dict__["_signature"], self._read_docstring())


@overload
def tool(function: Callable[P, R], /) -> FunctionTool[P, R]: ...
@overload
def tool(
    function: None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    strict: bool = True,
    return_directly: bool = False,
    needs_approval: Approval = False,
    timeout: float | None = None,
    retries: int = 0,
    input_guardrails: Iterable[ToolInputGuardrail] = (),
    output_guardrails: Iterable[ToolOutputGuardrail] = (),
) -> Callable[[Callable[P, R]], FunctionTool[P, R]]: ...
def tool(function: Callable[P, R] | None = None, /, **options: Unpack[_Options]) -> FunctionTool[P, R] | Callable[[Callable[P, R]], FunctionTool[P, R]]:
    """Make a tool of a function: `@tool`, `@tool(name=...)`, or `tool(function)`.

    The model is told the function's name, its docstring and its signature. A parameter annotated with `ToolContext` receives the context instead.
    A parameter without annotation takes any JSON value, which no strict schema can say: the tool is then shown as not strict.

    An `async def` with `yield` gives its result in pieces: each is shown to the consumer, as an event with `custom_output`. The result that the model is
    given is the text of all of them; if they are not all texts, the last one.
    """
    frame = inspect.currentframe()
    caller = None if frame is None else frame.f_back
    local_names = {} if caller is None else caller.f_locals
    if function is None:
        return lambda given: _make(given, local_names, options)
    return _make(function, local_names, options)


_OPTIONS: Final = _Options.__optional_keys__


def _make(function: Callable[P, R], local_names: Mapping[str, object], options: _Options) -> FunctionTool[P, R]:
    if isinstance(function, Tool):
        msg = f"tool {function.name}: it is a tool already."
        raise UsageError(msg)
    if isinstance(function, staticmethod):
        function = function.__func__
    if not callable(function):
        msg = f"tool: {function!r} cannot be called; give a function, or write @tool(name=...) with keywords."
        raise UsageError(msg)
    if unknown := options.keys() - _OPTIONS:
        msg = f"tool {_name_of(function)}: there is no option {(first := min(unknown))!r}. {meant(first, sorted(_OPTIONS))}"
        raise UsageError(msg)
    return FunctionTool(function, local_names=local_names, **options)


def _name_of(function: Callable[..., object]) -> str:
    if isinstance(function, partial):
        return _name_of(function.func)
    return getattr(function, "__name__", None) or type(function).__name__


def _is_async(function: Callable[..., object]) -> bool:
    if isinstance(function, partial):
        return _is_async(function.func)
    if not inspect.isroutine(function):
        function = type(function).__call__
    return inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)


def _check_options(made: Tool) -> None:
    name = made.name
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        msg = f"tool {name!r}: models take only names of up to 64 letters, digits, '_' and '-' (ASCII); give name=."
        raise UsageError(msg)
    if made.timeout is not None and not made.timeout > 0:
        msg = f"tool {name}: timeout={made.timeout} is a span of seconds, and must be more than 0."
        raise UsageError(msg)
    if not isinstance(made.retries, int) or made.retries < 0:
        msg = f"tool {name}: retries={made.retries!r} is a number of further attempts, and must not be negative."
        raise UsageError(msg)
    for one in (*made.input_guardrails, *made.output_guardrails):
        if not callable(one):
            msg = f"tool {name}: {one!r} is no guardrail: give functions of the call's data that return a ToolGuardrailFunctionOutput."
            raise UsageError(msg)
    if not isinstance(made.needs_approval, bool) and not callable(made.needs_approval):
        msg = f"tool {name}: needs_approval={made.needs_approval!r} is neither a bool nor something to call."
        raise UsageError(msg)
