"""One turn: a model's call, and all that it asks for.

Owns: the order of hooks, calls, guardrails and items within a turn. It must never keep anything for the next one: that is in the state of the run.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from openai.types.responses import ResponseOutputItem
from pydantic import TypeAdapter, ValidationError

from ..agent import Agent
from ..handoffs import Handoff, handoff
from ..items import ItemHelpers, MCPApprovalResponseItem, ModelResponse, ToolApprovalItem, ToolCallItem, ToolCallOutputItem
from ..run_context import AgentHookContext
from ..tool_names import resolve_collisions, tool_lookup_key, trace_name
from ..usage import deserialize_usage, serialize_usage
from .calls.approvals import formatted
from .calls.functions import make_calls
from .calls.handing_over import hand_over
from .calls.local_calls import LocalCall
from .calls.mcp_requests import answered_requests
from .calls.reading import Reader, without_known
from .ending import end_hooks, from_reply, from_tools, schema_of
from .hooks import call_hooks
from .live import LiveRun
from .model_call import ModelCall
from .recording import Recorder
from .shown import show_items
from .steps import Again, Asked, Final, Interrupted, Step

if TYPE_CHECKING:
    from ..agent_output import AgentOutputSchemaBase

__all__ = ["Turn", "enabled_handoffs", "output_item", "without_done"]


class Turn:
    """One turn of one agent."""

    def __init__(self, run: LiveRun, agent: Any, recorder: Recorder, tools: list[Any]) -> None:
        self._run = run
        self._agent = agent
        self._recorder = recorder
        self._tools = tools
        self._handoffs: list[Any] = []
        self._schema: AgentOutputSchemaBase | None = schema_of(agent)

    async def play(self) -> Step:
        """Ask the model, and do what it asks for."""
        run, agent, state = self._run, self._agent, self._run.state
        run.context.turn_input = ItemHelpers.input_to_new_input_list(state.original_input)
        if run.start_hooks:
            run.start_hooks = False
            if run.hooks is not None or agent.hooks is not None:
                own = run.context
                context = AgentHookContext(own.context, own.usage, own.turn_input, own.tool_input, own.decisions, own.understudy)
                await call_hooks(run, agent, "on_agent_start", "on_start", context, agent)
        plain = type(agent) is Agent and not callable(agent.instructions) and "get_system_prompt" not in agent.__dict__
        system = agent.instructions if plain else await agent.get_system_prompt(run.context)
        prompt = None if agent.prompt is None else await agent.get_prompt(run.context)
        if self._tools or agent.handoffs or run.agent_span is not None:
            await self._collect()
        else:
            run.model_tools = self._tools
        before = list(state.generated_items)
        call = ModelCall(run, agent, self._tools, self._handoffs, self._schema)

        if not self._recorder.keeps:
            response = await call.answer(system, prompt)
        else:
            response = await self._recorder.once(f"model {state.current_turn}", lambda: call.answer(system, prompt), _plain, _from_plain)
        state.last_response = response
        asked = self._reader().read(response, before)
        if asked.wants_work():
            without_known(asked, run.context.decisions, before)
        if run.output is not None:
            show_items(run, asked.items)
        if run.hooks is not None or agent.hooks is not None:
            await call_hooks(run, agent, "on_llm_end", "on_llm_end", run.context, agent, response)
        state.note_tools(agent, asked.used)
        return await self._done(response, asked, before, list(asked.items))

    async def resume(self) -> Step:
        """Go on with a turn that waits for decisions."""
        run, state = self._run, self._run.state
        response = state.model_responses[-1]
        run.context.turn_input = ItemHelpers.input_to_new_input_list(state.original_input)
        await self._collect()
        before = list(state.generated_items)
        asked = self._reader().read(response, before)
        without_done(asked, before)
        return await self._done(response, asked, before, [], resumed=True)

    async def _collect(self) -> None:
        """The tools and handoffs that the model is shown."""
        run, agent = self._run, self._agent
        handoffs = await enabled_handoffs(agent, run.context) if agent.handoffs else []
        if self._tools or handoffs:
            self._tools, handoffs = resolve_collisions(self._tools, handoffs, policy=run.config.tool_name_collision_policy)
        self._handoffs = handoffs
        run.model_tools = self._tools
        if run.agent_span is not None:
            run.agent_span.span_data.handoffs = [one.agent_name for one in handoffs]
            run.agent_span.span_data.tools = [name for tool in self._tools if (name := _shown_name(tool))]

    def _reader(self) -> Reader:
        return Reader(self._agent, self._tools, self._handoffs, self._run.config, self._schema)

    async def _done(self, response: ModelResponse, asked: Asked, before: list[Any], new: list[Any], *, resumed: bool = False) -> Step:
        """Do what is asked for, and say what follows."""
        run, agent, recorder = self._run, self._agent, self._recorder
        step = Step(Again(), response, run.state.original_input, before, new, asked=asked)
        if not resumed:
            await recorder.response(response)
        results: list[Any] = []
        if asked.wants_work():
            waiting: list[ToolApprovalItem] = []
            if asked.functions or asked.local or asked.unknown:
                results, step.input_results, step.output_results = await make_calls(run, agent, recorder, asked.functions)
                waiting = await self._after_functions(results, asked, new)
            if resumed and asked.unknown:
                new[:] = _in_order_of(response, new)
            pending: list[ToolApprovalItem] = []
            if asked.mcp:
                pending, extra = await answered_requests(run, agent, asked.mcp, before)
                new.extend(extra)
                waiting += pending
            if waiting:
                step.next = Interrupted(waiting)
                new.extend(item for item in pending if item not in new)
                return step
            if asked.handoffs:
                found = await hand_over(run, agent, asked, response, before, new)
                found.input_results, found.output_results = step.input_results, step.output_results
                return found
            is_final, output = await from_tools(run, agent, results)
            if is_final:
                await end_hooks(run, agent, output)
                step.next = Final(output)
                return step
        if resumed or asked.wants_work() or (asked.used and not any(item.type == "message_output_item" for item in new)) or (asked.skipped and not new):
            return step
        is_final, output = await from_reply(run, agent, response, before, new)
        if is_final:
            await end_hooks(run, agent, output)
            step.next = Final(output)
        return step

    async def _after_functions(self, results: Sequence[Any], asked: Asked, new: list[Any]) -> list[ToolApprovalItem]:
        """Put the results of calls behind the reply, and make those that are not calls of functions. Returns what has to be decided first."""
        run, agent, recorder = self._run, self._agent, self._recorder
        waiting: list[ToolApprovalItem] = []
        for result in results:
            if result.run_item is not None:
                new.append(result.run_item)
                if isinstance(result.run_item, ToolApprovalItem):
                    waiting.append(result.run_item)
                else:
                    run.context.decisions.completed(result.run_item.raw_item)
                    await recorder.result(result.run_item, result.tool.name)
            waiting += result.interruptions
        for local in asked.local:
            item = await LocalCall(run, agent, local.call, local.tool).make()
            new.append(item)
            if isinstance(item, ToolApprovalItem):
                waiting.append(item)
            else:
                run.context.decisions.completed(item.raw_item)
        for call, name in asked.unknown:
            said = await formatted(run, "tool_not_found", "function", name, call.call_id, f"Tool '{name}' not found.")
            item = ToolCallOutputItem(agent, ItemHelpers.tool_call_output_item(call, said), said)
            new.append(item)
            run.context.decisions.completed(item.raw_item)
            await recorder.result(item, name)
        return waiting


def _in_order_of(response: ModelResponse, items: list[Any]) -> list[Any]:
    """The results, in the order of their calls."""
    places = {getattr(call, "call_id", None): index for index, call in enumerate(response.output)}
    return sorted(items, key=lambda item: places.get(getattr(item, "call_id", None), len(places)))


def without_done(asked: Asked, before: Sequence[Any]) -> None:
    """Leave out the calls that have their results already."""
    done = {
        item.call_id if isinstance(item, ToolCallOutputItem) else item.raw_item.get("approval_request_id")
        for item in before
        if isinstance(item, ToolCallOutputItem | MCPApprovalResponseItem)
    }
    handed = {item.raw_item.get("call_id") for item in before if item.type == "handoff_output_item"}
    asked.functions = [one for one in asked.functions if one.call.call_id not in done]
    asked.local = [one for one in asked.local if ToolCallItem(None, one.call).call_id not in done]  # type: ignore[arg-type]  # for its id alone
    asked.unknown = [one for one in asked.unknown if one.call.call_id not in done]
    asked.handoffs = [one for one in asked.handoffs if one.call.call_id not in done | handed]
    asked.mcp = [one for one in asked.mcp if one.request.id not in done]


async def enabled_handoffs(agent: Any, context: Any) -> list[Handoff[Any, Any]]:
    """The handoffs that the model may choose now."""
    found = []
    for one in agent.handoffs:
        made = _handoff_to(agent, one) if isinstance(one, Agent) else one
        if made.is_enabled is True or await made.is_enabled_for_context(context, agent):
            found.append(made)
    return found


def _handoff_to(agent: Any, target: Agent[Any]) -> Handoff[Any, Any]:
    """A handoff to an agent that stands among the handoffs as it is. It is made once."""
    kept: dict[int, Any] = agent.__dict__.setdefault("kept_handoffs", {})
    known = kept.get(id(target))
    said = (target.name, target.handoff_description)
    if known is None or known[0] is not target or known[1] != said:
        known = kept[id(target)] = (target, said, handoff(target))
    made: Handoff[Any, Any] = known[2]
    return made


def _shown_name(tool: Any) -> str | None:
    shown = getattr(tool, "trace_name", None)
    if isinstance(shown, str):
        return shown
    key = tool_lookup_key(tool)
    return trace_name(tool.name, key[1] if key is not None and key[0] == "namespaced" else None) or tool.name


# --- a response as it is kept ---


def _plain(response: ModelResponse) -> dict[str, Any]:
    output = [item if isinstance(item, dict) else item.model_dump(mode="json", exclude_unset=True) for item in response.output]
    usage = serialize_usage(response.usage)
    return {"output": output, "usage": usage, "response_id": response.response_id, "request_id": response.request_id, "raw_usage": response.raw_usage}


def _from_plain(data: dict[str, Any]) -> ModelResponse:
    output = [output_item(item) for item in data["output"]]
    return ModelResponse(output, deserialize_usage(data["usage"]), data["response_id"], data["request_id"], data["raw_usage"])


def output_item(data: Any) -> Any:
    """A model's item of a dict; the dict, if there is no model for it."""
    try:
        return TypeAdapter(ResponseOutputItem).validate_python(data)
    except ValidationError:
        return data
