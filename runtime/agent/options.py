"""Options for one run, for all agents or for named ones.

The module defines the kinds of options and their recipients. The agent, tool or model that reads an
option defines its meaning.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final, TypeAlias, Unpack

from ..codec.packing import pack
from ..errors import CheckpointError, UsageError
from ..models.protocol import ModelSettings, PlainSettings
from ..option_names import meant

__all__ = [
    "InstructionOptions",
    "ModelOptions",
    "Options",
    "OptionsLike",
    "ToolOptions",
    "agent_options",
    "as_options",
    "as_tool_options",
    "instruction_option",
    "model_options",
    "plain_options",
    "restored_options",
    "tool_options",
]


class Options:
    """Named values that agents read in `context.options`.

    With `agents=("a", "b")` only those agents receive them. For your own options, write a subclass
    that passes the values to `super().__init__(**values)`.
    """

    __slots__ = ("agents", "values")

    def __init__(self, *, agents: Collection[str] | None = None, **values: object) -> None:
        if isinstance(agents, str):
            msg = (
                f"{type(self).__name__}: agents must be a collection of names, got {agents!r}. "
                f"Pass agents=({agents!r},)."
            )
            raise UsageError(msg)
        self.agents = None if agents is None else frozenset(agents)
        self.values = values

    def __repr__(self) -> str:
        shown = [] if self.agents is None else [f"agents={sorted(self.agents)}"]
        shown += [f"{key}={value!r}" for key, value in self.values.items()]
        return f"{type(self).__name__}({', '.join(shown)})"

    def concern(self, agent_name: str) -> bool:
        """Return True if the options apply to that agent."""
        return self.agents is None or agent_name in self.agents


class ToolOptions(Options):
    """Named values that tools read in `context.options`. With `tools=("t",)`, only those tools."""

    __slots__ = ("tools",)

    def __init__(
        self,
        *,
        tools: Collection[str] | None = None,
        agents: Collection[str] | None = None,
        **values: object,
    ) -> None:
        super().__init__(agents=agents, **values)
        self.tools = (
            None if tools is None else frozenset((tools,) if isinstance(tools, str) else tools)
        )


class ModelOptions(Options):
    """Model settings for one run: the fields of `ModelSettings`.

    They override the agents' settings.
    """

    __slots__ = ("settings",)

    def __init__(
        self, *, agents: Collection[str] | None = None, **settings: Unpack[PlainSettings]
    ) -> None:
        super().__init__(agents=agents, **settings)
        try:
            self.settings = ModelSettings(**settings)
        except TypeError:
            wrong = next((name for name in settings if name not in ModelSettings.__slots__), "")
            hint = meant(wrong, ModelSettings.__slots__)
            msg = (
                f"ModelOptions({wrong}=...): models have no such setting. {hint} Put settings of "
                "your provider alone into extra={...}."
            )
            raise UsageError(msg) from None


class InstructionOptions(Options):
    """An instruction for one run, which replaces the agents' own.

    Example: `InstructionOptions("Be brief.", agents=("Desk",))`. The text is used literally.
    """

    __slots__ = ("instruction",)

    def __init__(self, instruction: str, *, agents: Collection[str] | None = None) -> None:
        super().__init__(agents=agents, instruction=instruction)
        if not isinstance(instruction, str):
            msg = f"InstructionOptions: instruction must be a string, got {instruction!r:.80}."
            raise UsageError(msg)
        self.instruction = instruction


OptionsLike: TypeAlias = Options | Mapping[str, Any] | Iterable[Options | Mapping[str, Any]] | None


def as_options(given: OptionsLike) -> tuple[Options, ...]:
    """Return the value of `options=` as a tuple."""
    if given is None:
        return ()
    if isinstance(given, Options | Mapping):
        given = (given,)
    elif not isinstance(given, Iterable):
        raise _no_options(given)
    found = []
    for one in given:
        if isinstance(one, Options):
            found.append(one)
        elif isinstance(one, Mapping) and all(isinstance(key, str) for key in one):
            found.append(Options(**one))
        else:
            raise _no_options(one)
    return tuple(found)


def as_tool_options(given: OptionsLike) -> tuple[Options, ...]:
    """Return the value of `tool_options=` as a tuple; a dictionary applies to all tools."""
    if isinstance(given, Mapping):
        given = ToolOptions(**given)
    found = as_options(given)
    for one in found:
        if not isinstance(one, ToolOptions):
            msg = (
                "tool_options must contain ToolOptions(name=value, tools=(...)) or "
                f"dictionaries, got {one!r}."
            )
            raise UsageError(msg)
    return found


def _no_options(given: object) -> UsageError:
    return UsageError(
        "options must contain Options(name=value, agents=(...)), ToolOptions(...), "
        f"ModelOptions(...) or dictionaries, got {given!r}."
    )


def agent_options(options: tuple[Options, ...], agent_name: str) -> Mapping[str, Any]:
    """Return the option values for that agent."""
    if not options:
        return {}
    merged: dict[str, object] = {}
    for one in options:
        if not isinstance(one, ToolOptions | ModelOptions | InstructionOptions) and one.concern(
            agent_name
        ):
            merged.update(one.values)
    return merged


def tool_options(
    options: tuple[Options, ...], agent_name: str, tool_name: str
) -> Mapping[str, Any]:
    """Return the option values for that tool, when that agent calls it."""
    if not options:
        return {}
    merged: dict[str, object] = {}
    for one in options:
        if (
            isinstance(one, ToolOptions)
            and one.concern(agent_name)
            and (one.tools is None or tool_name in one.tools)
        ):
            merged.update(one.values)
    return merged


def model_options(
    options: tuple[Options, ...], agent_name: str, settings: ModelSettings
) -> ModelSettings:
    """Return the agent's model settings, overridden by the run's options."""
    for one in options:
        if isinstance(one, ModelOptions) and one.concern(agent_name):
            settings = settings.merged(one.settings)
    return settings


def instruction_option(options: tuple[Options, ...], agent_name: str) -> str | None:
    """Return the run's instruction for that agent, if there is one. The last one counts."""
    found = None
    for one in options:
        if isinstance(one, InstructionOptions) and one.concern(agent_name):
            found = one.instruction
    return found


def plain_options(options: tuple[Options, ...]) -> list[tuple[object, ...]]:
    """Return the options that can be stored, as plain data.

    Custom subclasses are left out, because only they know what their values mean.
    """
    rows: list[tuple[object, ...]] = []
    for one in options:
        kind = _KINDS.get(type(one))
        if kind is not None:
            values = (
                one.values
                if _can_be_kept(one.values)
                else {name: value for name, value in one.values.items() if _can_be_kept(value)}
            )
            tools = one.tools if isinstance(one, ToolOptions) else None
            rows.append(
                (
                    kind,
                    None if one.agents is None else sorted(one.agents),
                    None if tools is None else sorted(tools),
                    dict(values),
                )
            )
    return rows


def restored_options(rows: Iterable[Any]) -> tuple[Options, ...]:
    """Rebuild the options from such rows."""
    found: list[Options] = []
    for kind, agents, tools, values in rows:
        if kind == "tools":
            found.append(ToolOptions(tools=tools, agents=agents, **values))
        elif kind == "instruction":
            found.append(InstructionOptions(agents=agents, **values))
        else:
            found.append((ModelOptions if kind == "model" else Options)(agents=agents, **values))
    return tuple(found)


_KINDS: Final[Mapping[type, str]] = {
    Options: "plain",
    ToolOptions: "tools",
    ModelOptions: "model",
    InstructionOptions: "instruction",
}


def _can_be_kept(values: Any) -> bool:
    try:
        pack(values)
    except CheckpointError:
        return False
    return True
