"""One handoff, from its call to the agent that takes over.

The order is: callback, event, hooks, input filter. Only the event is recorded. A run that is
recovered after the event repeats the later steps, but not the callback.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from ...runtime.agent.agent_runtime import AgentRuntime
from ...runtime.agent.hooks import call_hooks
from ...runtime.data.agent_input import AgentInput
from ...runtime.data.chat import Message, ToolCall
from ...runtime.data.events import AgentEvent
from ...runtime.errors import HandoffError, ModelBehaviorError, UsageError, text_of
from ...runtime.maybe_await import maybe_await
from ...runtime.tracing import Span, span
from ..agent import Agent
from .filters import nest_history
from .handoff import Handoff, transfer_message
from .items import HandoffInputData, Item, as_messages, input_history_of, items_of

if TYPE_CHECKING:
    from .handoff import HandoffRules

__all__ = ["conversation", "filtered_input", "follow_again", "hand_off"]


async def hand_off(
    runtime: AgentRuntime,
    rules: HandoffRules,
    handoff: Handoff,
    call: ToolCall,
    rivals: Sequence[str],
    *,
    raises: bool,
) -> bool:
    """Hand off to another agent.

    Returns False if the model made an invalid call and must try again. `rivals` are the other
    handoffs of the same reply.
    """
    node, run = runtime.node, runtime.run
    with span("handoff", from_agent=node.name, to_agent=handoff.agent_name) as opened:
        if rivals:
            named = (rules.handoffs.get(name) for name in rivals)
            opened.set(
                requested_agents=[
                    handoff.agent_name,
                    *(
                        name if one is None else one.agent_name
                        for name, one in zip(rivals, named, strict=True)
                    ),
                ]
            )
            opened.fail("several handoffs were requested at once")
        try:
            target = await _target(handoff, runtime, call, opened)
        except ModelBehaviorError as error:
            error.agent, error.run, error.message = node.name, runtime.run.run_id, call
            if raises:
                raise
            await runtime.emit(
                AgentEvent.of(Message.tool(" ".join(str(error).split()), call.id, call.name))
            )
            return False
        result = Message.tool(handoff.get_transfer_message(target), call.id, call.name)
        if rules.output_key is not None:
            # Together with the event, after which the agent has ended.
            runtime.run.session[rules.output_key] = result.text
        await runtime.emit(AgentEvent.of(result, runtime.hand_over(target)))
        if run.hooks or node.agent.hooks is not None:
            of_run = call_hooks(run.hooks, None, "on_handoff", None, run, node.agent, target)
            await runtime.at_once(
                (
                    of_run,
                    call_hooks((), node.agent.hooks, "on_handoff", None, run, target, node.agent),
                ),
                "on_handoff",
            )
        await _prepare(runtime, rules, handoff, call, target)
    return True


async def _target(handoff: Handoff, runtime: AgentRuntime, call: ToolCall, opened: Span) -> Agent:
    where: dict[str, Any] = {
        "run": runtime.run.run_id,
        "agent": runtime.agent_name,
        "message": call,
    }
    try:
        target = await maybe_await(handoff.on_invoke_handoff(runtime.run, call.arguments))
    except (HandoffError, ModelBehaviorError) as error:
        opened.fail(error)
        error.run, error.agent = error.run or runtime.run.run_id, error.agent or runtime.agent_name
        raise
    except Exception as error:
        opened.fail(error)
        msg = f"the handoff {call.name} failed: {type(error).__name__}: {text_of(error)}"
        raise HandoffError(msg, **where) from error
    if not isinstance(target, Agent):
        msg = f"the handoff {call.name!r}: on_invoke_handoff must return an agent, got {target!r}."
        raise HandoffError(msg, **where)
    opened.set(to_agent=target.name)
    return target


async def follow_again(runtime: AgentRuntime, rules: HandoffRules, said: Sequence[Message]) -> None:
    """Prepare a recorded handoff again after a restart: find its target and its input."""
    last = said[-1]
    handoff = rules.handoffs.get(last.tool_name or "")
    if (
        handoff is None
        or handoff.mode == "call"
        or last.text != transfer_message(runtime.invocation.transfer or "")
    ):
        return  # another kind of transfer
    call = next(
        call
        for message in reversed(said)
        for call in message.tool_calls
        if call.id == last.tool_call_id
    )
    if handoff.agent is None:
        why = "because that handoff chooses its agent at each call"
        msg = (
            f"the run cannot resume its handoff {handoff.tool_name!r}, {why}. Pass agent= to the "
            "Handoff."
        )
        raise HandoffError(msg, run=runtime.run.run_id, agent=runtime.agent_name)
    runtime.hand_over(handoff.agent)
    await _prepare(runtime, rules, handoff, call, handoff.agent)


async def _prepare(
    runtime: AgentRuntime, rules: HandoffRules, handoff: Handoff, call: ToolCall, target: Agent
) -> None:
    """Set the input of the agent that takes over, if it differs from the plain conversation."""
    given = await filtered_input(runtime, rules, handoff, call)
    if given is not None:
        messages, asked = given
        runtime.hand_over(target, AgentInput(messages, runtime.streaming), asked)


async def filtered_input(
    runtime: AgentRuntime, rules: HandoffRules, handoff: Handoff, call: ToolCall
) -> tuple[tuple[Message, ...], int | None] | None:
    """Return the filtered conversation, and the number of its messages that are the run's input.

    Returns None if the handoff changes nothing.
    """
    chosen = (
        handoff.input_filter
        if handoff.input_filter is not None
        else runtime.run.handoff_input_filter
    )
    nests = rules.nests if handoff.nest_handoff_history is None else handoff.nest_handoff_history
    payload = (Message.user(call.arguments or "{}"),) if handoff.pass_input else ()
    if chosen is None and not nests:
        return ((*payload, *conversation(runtime, handoff)), None) if payload else None
    data = _input_data(runtime, calls=handoff.mode == "call")
    if chosen is not None:
        name = getattr(chosen, "__name__", None) or repr(chosen)
        whose = f"the input filter {name} of the handoff {handoff.tool_name}"
        try:
            data = await maybe_await(chosen(data))
        except Exception as error:
            msg = f"{whose} raised {type(error).__name__}: {text_of(error)}"
            raise HandoffError(msg, run=runtime.run.run_id, agent=runtime.agent_name) from error
        if not isinstance(data, HandoffInputData):
            msg = (
                f"{whose} must return a HandoffInputData, got {data!r}. Return data.clone(...), "
                "for example."
            )
            raise UsageError(msg, run=runtime.run.run_id, agent=runtime.agent_name)
    else:
        whose = f"the handoff {handoff.tool_name}"
    if nests:
        data = nest_history(data)
    asked = as_messages(data.clone(pre_handoff_items=(), new_items=()), whose)
    return (*payload, *as_messages(data, whose)), len(payload) + len(asked)


def conversation(runtime: AgentRuntime, handoff: Handoff) -> tuple[Message, ...]:
    """Return the agent's input and messages, without calls that have no result yet."""
    return as_messages(_input_data(runtime, calls=handoff.mode == "call"), "the conversation")


def _input_data(runtime: AgentRuntime, *, calls: bool) -> HandoffInputData:
    """Return the conversation as an input filter receives it."""
    handoffs = _handoff_names(runtime)
    invocation, given, said = (
        runtime.invocation,
        runtime.input.messages,
        runtime.invocation.messages,
    )
    input_range = invocation.input_range
    asked = (
        input_range.input.messages
        if input_range.verbatim_from is not None and input_range.input is not None
        else given
    )
    if input_range.asked is not None:
        asked = asked[
            : input_range.asked
        ]  # the part that the filter of an earlier handoff has left
    turn = max(
        (index for index, message in enumerate(said) if message.role == "assistant"), default=0
    )
    before = (
        *items_of(given[len(asked) :], None, handoffs),
        *items_of(said[:turn], runtime.agent_name, handoffs),
    )
    # While the round is running, it depends on timing which other calls of the reply have a result
    # by now.
    new = said[turn : turn + 1] if calls else said[turn:]
    data = HandoffInputData(
        input_history_of(asked), before, items_of(new, runtime.agent_name, handoffs), runtime.run
    )
    _name_agents(runtime, (*data.pre_handoff_items, *data.new_items))
    return data


def _name_agents(runtime: AgentRuntime, items: Sequence[Item]) -> None:
    """Set the agent of each item, where known, and the target of each handoff result."""
    following = runtime.invocation.following
    for item in items:
        if item.agent_name == runtime.agent_name:
            item.agent = cast("Agent", runtime.node.agent)
        if item.type == "handoff_output_item":
            nodes = (
                *(() if following is None else (following.node,)),
                *(node for tree in runtime.node.root.trees() for node in tree.walk()),
            )
            item.target_agent = next(
                (
                    cast("Agent", node.agent)
                    for node in nodes
                    if item.text == transfer_message(node.name)
                ),
                None,
            )


def _handoff_names(runtime: AgentRuntime) -> frozenset[str]:
    """Return the handoff tools of all agents in this run.

    Their calls may be in the conversation.
    """
    found: set[str] = set()
    for tree in runtime.node.root.trees():
        for node in tree.walk():
            rules: HandoffRules | None = getattr(node.kept, "rules", None)
            if rules is not None:
                found.update(name for name, one in rules.handoffs.items() if one.mode == "transfer")
    return frozenset(found)
