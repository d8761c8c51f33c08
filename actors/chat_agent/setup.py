"""The setup of one agent in one place of a tree: computed once, and shared by all runs.

It holds the tools including the transfer tool, their specs, the transfer instruction and the form
of the answer, and nothing of a run.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from string import digits
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from ...runtime.agent.context import AgentContext
from ...runtime.agent.history import TRANSFER_TOOL
from ...runtime.agent.tree import Node
from ...runtime.data.chat import Message
from ...runtime.errors import UsageError
from ..handoffs.call import HandoffCall
from ..handoffs.handoff import HandoffRules
from ..handoffs.transfer import transfer_instruction, transfer_tool_to
from .answer import AnswerForm
from .tool_round import ToolPolicy

if TYPE_CHECKING:
    from .chat_model_agent import ChatModelAgent

__all__ = ["PLACEHOLDER", "MessageModifier", "Setup", "closest"]

MessageModifier: TypeAlias = Callable[
    [AgentContext, Sequence[Message]], Sequence[Message] | Awaitable[Sequence[Message]]
]
"""A function that returns the messages to send to a model instead of these."""

PLACEHOLDER: Final = re.compile(r"\{([^{}]+)\}")


class Setup:
    """The parts of a model's request that do not depend on the run."""

    __slots__ = (
        "after_agent",
        "after_model",
        "answer",
        "before_agent",
        "before_model",
        "everywhere",
        "guards",
        "model_of_all_runs",
        "policy",
        "prefix",
        "prepares",
        "rules",
        "specs",
        "stands_around",
        "transfers",
        "widened",
        "wrap_model",
    )

    def __init__(self, agent: ChatModelAgent, node: Node) -> None:
        tools = {tool.name: tool for tool in agent.tools}
        self.transfers = transfer_instruction(node.targets) if node.targets else ""
        if node.targets:
            if TRANSFER_TOOL in tools:
                msg = (
                    f"agent {agent.name!r} can hand off to "
                    f"{[target.name for target in node.targets]}, so the name {TRANSFER_TOOL!r} is "
                    "taken, but it has a tool of that name. Rename the tool."
                )
                raise UsageError(msg, agent=agent.name)
            tools[TRANSFER_TOOL] = transfer_tool_to(node.targets)
        self.widened: Any = None  # the same setup with the tools of its toolsets, as last listed
        self.everywhere: Mapping[Any, Sequence[object]] | None = (
            # Guardrails of other agents that may apply to this one, too; computed at first use.
            None
        )
        handoffs = {handoff.tool_name: handoff for handoff in agent.check_handoffs()}
        self.rules = HandoffRules(handoffs, agent.nest_handoff_history, agent.output_key)
        tools |= {
            name: HandoffCall(handoff, self.rules, agent.name)
            for name, handoff in handoffs.items()
            if handoff.mode == "call"
        }
        self.specs = (
            *(tool.spec for tool in tools.values()),
            *(one.spec for one in handoffs.values() if one.mode == "transfer"),
        )
        stages = (
            {
                stage: tuple(one for one in agent.middleware if stage in one.overridden)
                for stage in _STAGES
            }
            if agent.middleware
            else _NONE
        )
        self.before_agent = stages["before_agent"]
        self.after_agent = tuple(reversed(stages["after_agent"]))
        self.before_model = stages["before_model"]
        self.after_model = tuple(reversed(stages["after_model"]))
        self.wrap_model = tuple(reversed(stages["wrap_model"]))
        # Whether each request may be modified.
        self.prepares = bool(self.before_model or handoffs or agent.message_modifier is not None)
        self.guards = bool(agent.input_guardrails or agent.output_guardrails)
        # Whether there is anything around a model call, but for the run's hooks and telemetry.
        self.stands_around = bool(
            self.prepares or self.wrap_model or self.after_model or self.before_agent
        )
        self.model_of_all_runs = (
            agent.model if getattr(agent.model, "for_run", None) is None else None
        )  # a model that serves all runs
        self.policy = ToolPolicy(
            tools=tools,
            direct=agent.return_directly,
            raises=agent.on_tool_error == "raise",
            parallel=agent.parallel_tool_calls,
            unknown=agent.unknown_tool,
            wrappers=stages["wrap_tool"],
            exit_name=agent.exit_name,
            handoffs=handoffs,
            several=agent.multiple_handoffs,
            second_handoff=agent.multiple_handoffs_message,
            output_key=agent.output_key,
        )
        # Plain text needs no form.
        self.answer = (
            None
            if agent.output_type is None or agent.output_type is str
            else AnswerForm(agent.output_type, agent.name)
        )
        # The messages before the input in every request, if they are the same for all runs.
        self.prefix: tuple[Message, ...] | None = None
        if (
            isinstance(agent.instruction, str)
            and agent.make_model_input is None
            and not PLACEHOLDER.search(agent.instruction)
        ):
            text = self.joined(agent.instruction)
            self.prefix = (Message("system", text),) if text else ()

    def joined(self, instruction: str) -> str:
        """Join the agent's own instruction and the description of its transfer targets."""
        return (
            f"{instruction}\n\n{self.transfers}"
            if instruction and self.transfers
            else instruction or self.transfers
        )


def closest(name: str, names: Iterable[str]) -> str | None:
    """Return the name that `name` probably misspells, or None.

    Names that differ only in their digits are taken to be intended.
    """
    from difflib import get_close_matches  # noqa: PLC0415 -- needed only for an error

    plain = name.translate(_WITHOUT_DIGITS)
    found = get_close_matches(
        name,
        [
            other
            for other in names
            if other.translate(_WITHOUT_DIGITS) != plain and is_one_slip(name, other)
        ],
        1,
        _CLOSE,
    )
    return found[0] if found else None


def is_one_slip(name: str, other: str) -> bool:
    """Return whether one letter was omitted, added, replaced or swapped with its neighbour.

    Names that differ by more are different names.
    """
    short, long = sorted((name, other), key=len)
    if len(long) - len(short) > 1:
        return False
    at = next(
        (index for index, (one, two) in enumerate(zip(short, long, strict=False)) if one != two),
        len(short),
    )
    if len(short) < len(long):
        return short[at:] == long[at + 1 :]
    swapped = short[:at] + short[at + 1 : at + 2] + short[at : at + 1] + short[at + 2 :]
    return short[at + 1 :] == long[at + 1 :] or swapped == long


_CLOSE: Final = 0.7
_WITHOUT_DIGITS: Final[Mapping[int, None]] = MappingProxyType(dict.fromkeys(map(ord, digits)))
_STAGES: Final = (
    "before_agent",
    "after_agent",
    "before_model",
    "after_model",
    "wrap_model",
    "wrap_tool",
)
_NONE: Final[Mapping[str, tuple[Any, ...]]] = MappingProxyType(dict.fromkeys(_STAGES, ()))
