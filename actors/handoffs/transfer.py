"""Transfers: the transfer tool, its instruction, and agents that always transfer.

The exit tool is here, too. The run's supervisor performs a transfer.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from typing import ClassVar, Final, Self, Unpack

from ...runtime.agent.context import AgentContext, runtime_of
from ...runtime.agent.history import TRANSFER_TOOL
from ...runtime.agent.options import OptionsLike
from ...runtime.agent.relations import tell_parent
from ...runtime.agent.tree import INNER, Node
from ...runtime.data.agent_input import AgentInput
from ...runtime.data.chat import Message, ToolCall, new_id
from ...runtime.data.events import AgentEvent, Exit, TransferToAgent
from ...runtime.errors import TransferError, UsageError, text_of
from ..agent import Agent, AgentOptions
from ..tools.tool import Tool, ToolArgumentsError
from ..tools.tool_context import ToolContext, call_state_of

__all__ = [
    "DeterministicTransfer",
    "TransferTool",
    "exit_tool",
    "text_argument",
    "transfer_instruction",
    "transfer_output",
    "transfer_target",
    "transfer_tool",
    "transfer_tool_to",
]

_INSTRUCTION: Final = """Available other agents: {agents}

Decision rule:
- If you're best suited for the question according to your description: ANSWER
- If another agent is better according its description: CALL '{tool}' function with their agent name

When transferring: OUTPUT ONLY THE FUNCTION CALL"""


def transfer_instruction(targets: Sequence[Node]) -> str:
    """Return the instruction that lists the agents a model may transfer to."""
    agents = "".join(
        f"\n- Agent name: {node.name}\n  Agent description: {node.agent.description}"
        for node in targets
    )
    return _INSTRUCTION.format(agents=agents, tool=TRANSFER_TOOL)


def transfer_output(agent_name: str) -> str:
    """Return the result of a transfer call."""
    return f"successfully transferred to agent [{agent_name}]"


async def _transfer(context: ToolContext, arguments: dict[str, object]) -> str:
    agent_name = text_argument(context, arguments, "agent_name")
    call_state = call_state_of(context)
    if call_state.runtime.node.target(agent_name) is None:
        raise TransferError(call_state.runtime.node.no_target(agent_name), message=call_state.call)
    context.send_action(TransferToAgent(agent_name))
    return transfer_output(agent_name)


async def _exit(context: ToolContext, arguments: dict[str, object]) -> str:
    context.send_action(Exit())
    return text_argument(context, arguments, "final_result")


def text_argument(context: ToolContext, arguments: dict[str, object], name: str) -> str:
    """Return the argument of that name. Raise, for the model to read, if it is not a string."""
    value = arguments[name]
    if not isinstance(value, str):
        msg = (
            f"arguments of {context.tool_name} are not valid: {name}: must be a string (got "
            f"{value!r})"
        )
        raise ToolArgumentsError(msg)
    return value


def _one_text(name: str, description: str, values: Sequence[str] = ()) -> dict[str, object]:
    argument: dict[str, object] = {"type": "string", "description": description}
    if values:
        argument["enum"] = [*values]
    return {
        "type": "object",
        "properties": {name: argument},
        "required": [name],
        "additionalProperties": False,
    }


class TransferTool(Tool):
    """The tool by which a model transfers, to existing agents only."""

    def __init__(self, targets: Sequence[str] = ()) -> None:
        parameters = _one_text("agent_name", "the name of the agent to transfer to", targets)
        super().__init__(
            name=TRANSFER_TOOL,
            description="Transfer the question to another agent.",
            parameters=parameters,
            call=_transfer,
            return_directly=True,
        )


transfer_tool: Final = TransferTool()


def transfer_tool_to(targets: Sequence[Node]) -> TransferTool:
    """Return the tool of an agent that may transfer to `targets`, which are named in its schema."""
    return TransferTool([node.name for node in targets])


def transfer_target(call: ToolCall, node: Node) -> Node | None:
    """Return the agent named by a transfer call, if this agent may transfer to it."""
    try:
        arguments = json.loads(call.arguments)
    except ValueError:
        return None
    name = arguments.get("agent_name") if isinstance(arguments, dict) else None
    return node.target(name) if isinstance(name, str) else None


exit_tool: Final = Tool(
    name="exit",
    description="Exit the agent process and return the final result.",
    parameters=_one_text("final_result", "the final result to return"),
    call=_exit,
    return_directly=True,
)


class DeterministicTransfer(Agent):
    """An agent that transfers when it finishes, with the name of the agent that it wraps.

    It does not transfer after an exit, an interrupt or an error. If `to` has several names, all are
    announced and the last one is followed.
    """

    reports_failure: ClassVar[bool] = False
    """Whether it also transfers after a failure, with a message that describes the failure."""

    def __init__(self, agent: Agent, to: Sequence[str]) -> None:
        if not isinstance(agent, Agent):
            msg = f"DeterministicTransfer: agent must be an Agent, got {agent!r}."
            raise UsageError(msg)
        targets = (to,) if isinstance(to, str) else tuple(to)
        if not targets:
            msg = (
                f"DeterministicTransfer({agent.name!r}, to=[]): to must not be empty. Pass at "
                "least one agent to hand off to."
            )
            raise UsageError(msg, agent=agent.name)
        super().__init__(
            name=agent.name,
            description=agent.description,
            disallow_transfer_to_parent=agent.disallow_transfer_to_parent,
        )
        self.wrapped = agent
        self.to = targets

    def on_set_as_sub_agent(self, parent: Agent) -> None:
        if self.wrapped is not None:
            # The wrapped agent has the same parent; its own setting decides about transfers back.
            tell_parent(self.wrapped, parent)

    def with_options(self, *, options: OptionsLike = None, **changes: Unpack[AgentOptions]) -> Self:
        """Return a copy that wraps a copy with these options, which apply to the wrapped agent.

        `disallow_transfer_to_parent` is set on both.
        """
        twin = self._twin()
        assert self.wrapped is not None
        twin.wrapped = self.wrapped.with_options(options=options, **changes)
        if "disallow_transfer_to_parent" in changes:
            twin.disallow_transfer_to_parent = changes["disallow_transfer_to_parent"]
        return twin

    async def run(self, input: AgentInput, context: AgentContext) -> AsyncIterator[AgentEvent]:  # noqa: A002 -- the documented name
        call_state = runtime_of(context)
        invocation = call_state.invocation
        # It counts its own messages, and resumes after them.
        said = len(invocation.messages)
        if not context.state.get("played"):
            inner = invocation.node.inner
            assert inner is not None  # `wrapped` is set
            # Including the input that was passed with the transfer.
            given = None if invocation.input_range.input is None else input
            outcome = await call_state.cast_node(
                inner, invocation.run_path, invocation.lane, INNER, input=given
            )
            told = self.reports_failure and outcome.kind == "failed"
            if outcome.kind != "finished" and not told:
                return
            context.state["played"] = True
            invocation.broke = invocation.broke or outcome.broke
            if told and outcome.error is not None:
                context.state["reports"] = 1
                yield AgentEvent.of(
                    Message.assistant(
                        f"I have failed: {type(outcome.error).__name__}: {text_of(outcome.error)}"
                    )
                )
        skipped = said - context.state.get("reports", 0)
        for index, target in enumerate(self.to):
            if skipped >= 2 * index + 2:
                continue
            if target == self.to[-1] and invocation.node.target(target) is None:
                raise TransferError(
                    invocation.node.no_target(target), run=context.run_id, agent=self.name
                )
            if skipped == 2 * index + 1:
                call = invocation.messages[-1].tool_calls[0]
            else:
                call = ToolCall(
                    f"call_{new_id()}",
                    TRANSFER_TOOL,
                    json.dumps({"agent_name": target}, ensure_ascii=False, separators=(",", ":")),
                )
                yield AgentEvent.of(Message.assistant("", (call,)))
            yield AgentEvent.of(
                Message.tool(transfer_output(target), call.id, TRANSFER_TOOL),
                TransferToAgent(target),
            )
