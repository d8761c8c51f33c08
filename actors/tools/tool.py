"""`Tool`, which an agent can call, and `@tool`, which makes one of a function.

All runs share a tool, so it is immutable and holds nothing of a call. Timeout, retries and approval
are data here; the code that calls the tool implements them.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import WRAPPER_ASSIGNMENTS, partial
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Final,
    Generic,
    Literal,
    ParamSpec,
    Protocol,
    Self,
    TypeAlias,
    TypedDict,
    TypeVar,
    Unpack,
    overload,
)

from ...runtime.errors import ToolError, UsageError
from ...runtime.log import loggers
from ...runtime.models.protocol import ToolSpec
from ...runtime.option_names import meant
from .signature import Docstring, Signature, read_docstring, read_signature
from .strict_schema import ensure_strict_json_schema, has_untyped_property
from .tool_context import ToolContext
from .tool_guardrail import ToolInputGuardrail, ToolOutputGuardrail
from .tool_result import result_of

if TYPE_CHECKING:
    from ...runtime.actor.host import Host
    from .function_schema import FunctionArguments

__all__ = ["FunctionTool", "Tool", "ToolArgumentsError", "Toolset", "tool"]

P = ParamSpec("P")
R = TypeVar("R")

Approval: TypeAlias = bool | Callable[[ToolContext, Any], bool | Awaitable[bool]]
"""Whether a call needs approval, or a function of its context and arguments that decides."""

_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")


class ToolArgumentsError(ToolError):
    """The model's arguments are not valid.

    The message is one line, for the model. The function was not called.
    """


class _Arguments(Protocol):
    schema: dict[str, object]

    def parse(self, text: str) -> object: ...
    def complete(self, values: Any) -> object: ...


class Tool:
    """A tool that an agent can call, made by `@tool` or directly.

    When made directly, `parameters` is a JSON schema, a pydantic model, a dataclass or a TypedDict.
    `call(context, arguments)`, def or async def, receives a dict or an instance of that type. With
    a JSON schema, only the presence of required arguments and the absence of extra ones are
    checked; `call` checks the rest.

    `strict` (the default) means strict where the schema allows it. If it does not, as for a
    `dict[str, int]` or a parameter without annotation, the model receives the schema unchanged, and
    `spec.strict` is False. The arguments are validated in either case. A plain def runs in a worker
    thread.

    `timeout` is the number of seconds that each attempt may take. An `async def` is cancelled then.
    A thread cannot be ended, so a plain def, timed from the start of its thread, is abandoned:
    `context.cancelled` is set, and the error that the model receives says that the work may still
    be done.

    `retries` is the number of further attempts after a failure. An attempt whose thread may still
    be running is repeated only with `retry_at_work=True`, because the work would then run twice
    concurrently.
    """

    plays_agent: ClassVar[bool] = False
    """Whether a call runs an agent, which the run knows about."""

    origin: str = ""
    """The identity that an approval is bound to, besides the tool's name."""

    name: str
    description: str
    strict: bool
    return_directly: bool
    needs_approval: Approval
    approval_timeout: float | None
    on_timeout: Literal["deny", "approve"]
    timeout: float | None
    retries: int
    retry_at_work: bool
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
        approval_timeout: float | None = None,
        on_timeout: Literal["deny", "approve"] = "deny",
        timeout: float | None = None,
        retries: int = 0,
        retry_at_work: bool = False,
        input_guardrails: Iterable[ToolInputGuardrail] = (),
        output_guardrails: Iterable[ToolOutputGuardrail] = (),
    ) -> None:
        if not callable(call):
            msg = (
                f"tool {name}: call must be a function, got {call!r}. Pass a def or async def "
                "that takes (context, arguments)."
            )
            raise UsageError(msg)
        own = self.__dict__
        own["_parameters"] = parameters
        own["_call"] = call
        own["_blocking"] = not _is_async(call)
        own.update(
            name=name, description=description, strict=strict, return_directly=return_directly
        )
        own.update(
            needs_approval=needs_approval,
            approval_timeout=approval_timeout,
            on_timeout=on_timeout,
            timeout=timeout,
            retries=retries,
            retry_at_work=retry_at_work,
        )
        own.update(
            input_guardrails=tuple(input_guardrails), output_guardrails=tuple(output_guardrails)
        )
        _check_options(self)
        if not (parameters is None or isinstance(parameters, Mapping)):
            _ = self._arguments  # report an impossible schema here, not in the middle of a run

    def __setattr__(self, name: str, value: object) -> None:
        msg = (
            f"tool {self.name}: {name} cannot be set, because all runs share a tool. Make "
            "another tool."
        )
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
        """The description of the tool for the model, made at first use."""
        known: ToolSpec | None = self.__dict__.get("_spec")
        if known is None:
            # Two threads may both make it. The results are equal, and the first one is stored.
            known = self.__dict__.setdefault("_spec", self._make_spec())
        return known

    async def invoke(self, context: ToolContext, arguments: str) -> object:
        """Call the tool with the arguments in that JSON text.

        Returns its result. Raises `ToolArgumentsError`, or the tool's own error.
        """
        value = self._parse(arguments)
        return await result_of(
            context,
            await context.run_blocking(self._call, context, value)
            if self._blocking
            else self._call(context, value),
        )

    def validated(self, arguments: str) -> Any:
        """Return the values with which it would be called, with defaults filled in.

        Raises `ToolArgumentsError` if they are not valid.
        """
        return self._arguments.complete(self._parse(arguments))

    def _parse(self, text: str) -> Any:
        if text and text.isspace():
            text = ""
        try:
            return self._arguments.parse(text)
        except ValueError as error:
            from .function_schema import explain  # noqa: PLC0415 -- imports pydantic

            msg = (
                f"arguments of {self.name} are not valid: {explain(error, self._arguments.schema)}"
            )
            raise ToolArgumentsError(msg) from error

    @property
    def _arguments(self) -> Any:
        known: _Arguments | None = self.__dict__.get("_made_arguments")
        return (
            known
            if known is not None
            else self.__dict__.setdefault("_made_arguments", self._make_arguments())
        )

    def _make_arguments(self) -> _Arguments:
        from .function_schema import SchemaArguments, TypeArguments  # noqa: PLC0415 -- imports pydantic

        parameters = self.__dict__["_parameters"]
        if parameters is None or isinstance(parameters, Mapping):
            return SchemaArguments(parameters or {}, self.name)
        return TypeArguments(parameters, self.name)

    def _make_spec(self) -> ToolSpec:
        schema = self._arguments.schema
        if self.strict and not has_untyped_property(schema):
            try:
                return ToolSpec(
                    self.name, self.description, ensure_strict_json_schema(schema), strict=True
                )
            except UsageError:  # the type does not allow strict mode
                return ToolSpec(self.name, self.description, schema, strict=False)
        return ToolSpec(self.name, self.description, schema, strict=False)


class _Settings(TypedDict, total=False):
    """The options of `@tool` besides a name and a description."""

    strict: bool
    return_directly: bool
    needs_approval: Approval
    approval_timeout: float | None
    on_timeout: Literal["deny", "approve"]
    timeout: float | None
    retries: int
    retry_at_work: bool
    input_guardrails: Iterable[ToolInputGuardrail]
    output_guardrails: Iterable[ToolOutputGuardrail]


class _Options(_Settings, total=False):
    name: str | None
    description: str | None


class FunctionTool(Tool, Generic[P, R]):
    """The result of `@tool`: a tool that can still be called as a function."""

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
            msg = (
                f"tool {own_name}: {function!r} must be a function that returns its result, or "
                f"an async generator that yields it in parts, got {kind}."
            )
            raise UsageError(msg)
        own = self.__dict__
        own["_function"] = function
        super().__init__(name=own_name, description=description or "", call=function, **options)  # type: ignore[arg-type]  # only called by `invoke` below
        signature = read_signature(function, own_name, local_names)
        own["_signature"] = signature
        if _name_of(function) != "<lambda>":
            _warn_of_gaps(function, own_name, signature, has_description=description is not None)
        if description is None:
            own.pop("description")  # from here on, the property below answers
        own["__wrapped__"] = function
        for key in WRAPPER_ASSIGNMENTS:
            if key != "__annotations__" and (value := getattr(function, key, None)) is not None:
                own[key] = value
        own.setdefault("__name__", own_name)
        if not signature.is_plain:
            _ = self._arguments  # report an impossible schema here, not in the middle of a run

    if not TYPE_CHECKING:  # a misspelt attribute stays an error to type checkers

        def __getattr__(self, name: str) -> str:
            if name == "description":  # read from the docstring at first use, then cached
                return self.__dict__.setdefault("description", self._read_docstring().description)
            msg = f"{type(self).__name__!r} object has no attribute {name!r}"
            raise AttributeError(msg)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function itself, as if it were not a tool."""
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
        # Bound here, so that an argument named `function` does not collide with a parameter of
        # run_blocking.
        return await result_of(
            context,
            await context.run_blocking(partial(function, *args, **values))
            if own["_blocking"]
            else function(*args, **values),
        )

    def _read_docstring(self) -> Docstring:
        function = self.__dict__["_function"]
        if isinstance(function, partial):
            function = function.func
        text = (
            function.__doc__
            if inspect.isroutine(function)
            else type(function).__call__.__doc__ or type(function).__doc__
        )
        return read_docstring(text)

    def _make_arguments(self) -> FunctionArguments:
        from .function_schema import FunctionArguments  # noqa: PLC0415 -- imports pydantic

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
    approval_timeout: float | None = None,
    on_timeout: Literal["deny", "approve"] = "deny",
    timeout: float | None = None,
    retries: int = 0,
    retry_at_work: bool = False,
    input_guardrails: Iterable[ToolInputGuardrail] = (),
    output_guardrails: Iterable[ToolOutputGuardrail] = (),
) -> Callable[[Callable[P, R]], FunctionTool[P, R]]: ...
def tool(
    function: Callable[P, R] | None = None, /, **options: Unpack[_Options]
) -> FunctionTool[P, R] | Callable[[Callable[P, R]], FunctionTool[P, R]]:
    """Make a tool of a function: `@tool`, `@tool(name=...)`, or `tool(function)`.

    The model receives the function's name, docstring and signature. A parameter annotated with
    `ToolContext` receives the context instead. A parameter without annotation accepts any JSON
    value, which a strict schema cannot express, so such a tool is not strict.

    An `async def` with `yield` produces its result in parts. The consumer receives each part as an
    event with `custom_output`. The result for the model is the joined text of all parts, or the
    last part if not all are strings.
    """
    frame = inspect.currentframe()
    caller = None if frame is None else frame.f_back
    local_names = {} if caller is None else caller.f_locals
    if function is None:
        return lambda given: _make(given, local_names, options)
    return _make(function, local_names, options)


_OPTIONS: Final = _Options.__optional_keys__


def _make(
    function: Callable[P, R], local_names: Mapping[str, object], options: _Options
) -> FunctionTool[P, R]:
    if isinstance(function, Tool):
        msg = f"tool {function.name} is already a tool. Pass it as it is."
        raise UsageError(msg)
    if isinstance(function, staticmethod):
        function = function.__func__
    if not callable(function):
        msg = (
            f"tool: the first argument must be a function, got {function!r}. Pass options by "
            "keyword: @tool(name=...)."
        )
        raise UsageError(msg)
    if unknown := options.keys() - _OPTIONS:
        msg = (
            f"tool {_name_of(function)!r}: unknown option {(first := min(unknown))!r}. "
            f"{meant(first, sorted(_OPTIONS))}"
        )
        raise UsageError(msg)
    return FunctionTool(function, local_names=local_names, **options)


def _warn_of_gaps(
    function: Callable[..., object], name: str, signature: Signature, *, has_description: bool
) -> None:
    """Warn of a missing docstring and of missing types, which the model would need."""
    if not has_description and not inspect.getdoc(function):
        loggers.tools.warning(
            "Tool %s has no docstring, so models are not told what it does. Write one, or "
            "pass description=.",
            name,
        )
    if signature.untyped:
        loggers.tools.warning(
            "Tool %s has parameters without types, so models may pass anything: %s. Annotate them.",
            name,
            ", ".join(signature.untyped),
        )


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
        msg = (
            f"tool {name!r}: the name must have 1 to 64 ASCII letters, digits, '_' or '-'. Pass "
            "another one as name=."
        )
        raise UsageError(msg)
    if made.timeout is not None and not made.timeout > 0:
        msg = f"tool {name}: timeout must be a number of seconds above 0, got {made.timeout}."
        raise UsageError(msg)
    if not isinstance(made.retries, int) or made.retries < 0:
        msg = (
            f"tool {name}: retries must be a number of further attempts, 0 or more, "
            f"got {made.retries!r}."
        )
        raise UsageError(msg)
    for one in (*made.input_guardrails, *made.output_guardrails):
        if not callable(one):
            msg = (
                f"tool {name}: a guardrail must be a function, got {one!r}. Pass functions of the "
                "call's data that return a ToolGuardrailFunctionOutput."
            )
            raise UsageError(msg)
    if made.approval_timeout is not None and not made.approval_timeout > 0:
        msg = (
            f"tool {name}: approval_timeout must be a number of seconds above 0, got "
            f"{made.approval_timeout}."
        )
        raise UsageError(msg)
    if made.on_timeout not in ("deny", "approve"):
        msg = f"tool {name}: on_timeout must be 'deny' or 'approve', got {made.on_timeout!r}."
        raise UsageError(msg)
    if not isinstance(made.needs_approval, bool) and not callable(made.needs_approval):
        msg = (
            f"tool {name}: needs_approval must be a bool or a function, "
            f"got {made.needs_approval!r}."
        )
        raise UsageError(msg)


class Toolset:
    """A set of tools that may change. It is an element of an agent's `tools`."""

    asks_approval: bool = False
    """Whether some of the tools may need approval."""

    async def tools_in(self, system: Host) -> Sequence[Tool]:
        """Return the tools for an agent that runs in that system.

        It must return the same sequence object until the tools change.
        """
        raise NotImplementedError
