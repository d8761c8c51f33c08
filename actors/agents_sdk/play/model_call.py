"""One call of a model.

Owns: what the model is given, how its answer comes, whole or event by event, and what is counted. It must never look at what the answer asks for.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from openai.types.responses import Response, ResponseCompletedEvent, ResponseOutputItemDoneEvent

from ....runtime.maybe_await import maybe_await
from ..exceptions import ModelBehaviorError, UserError
from ..items import ItemHelpers, ModelResponse
from ..items.history import deduplicated, model_input, run_items_to_input
from ..models.attempts import answered, counted, streamed
from ..models.interface import Model, ModelTracing
from ..run_config import CallModelData, ModelInputData
from ..stream_events import RawResponsesStreamEvent
from ..tool import ProgrammaticToolCallingTool
from ..usage import usage_of_response
from .hooks import call_hooks
from .sessions import rewind, save_input

if TYPE_CHECKING:
    from ..model_settings import ModelSettings
    from .live import LiveRun

__all__ = ["ModelCall", "model_of", "settings_of"]

_FAILED: Final = ("response.incomplete", "response.failed", "error", "response.error")


def model_of(run: LiveRun, agent: Any) -> Model:
    """The model that an agent uses in this run."""
    config = run.config
    if isinstance(config.model, Model):
        return config.model
    if isinstance(config.model, str):
        return config.model_provider.get_model(config.model)
    return agent.model if isinstance(agent.model, Model) else config.model_provider.get_model(agent.model)


def settings_of(run: LiveRun, agent: Any) -> ModelSettings:
    """The settings of its call. After a round of tools the model chooses freely, or it would never come to an end."""
    settings: ModelSettings = agent.model_settings
    config = run.config
    if config.model is not None:
        from ..models.default_models import get_default_model_settings  # noqa: PLC0415 -- for those who replace the model

        implicit = get_default_model_settings(agent.model) if agent.model is None or isinstance(agent.model, str) else None
        if implicit is not None and settings == implicit:
            settings = get_default_model_settings(config.model) if isinstance(config.model, str) else type(settings)()
    settings = settings.resolve(config.model_settings)
    if agent.reset_tool_choice and settings.tool_choice is not None and run.state.has_used_tools(agent):
        return replace(settings, tool_choice=None)
    return settings


class ModelCall:
    """One call: what is given, and what comes."""

    def __init__(self, run: LiveRun, agent: Any, tools: list[Any], handoffs: list[Any], schema: Any) -> None:
        self._run = run
        self._agent = agent
        self._tools = tools
        self._handoffs = handoffs
        self._schema = schema

    async def answer(self, system: str | None, prompt: Any) -> ModelResponse:
        """Ask the model, and count what it has cost."""
        run, agent = self._run, self._agent
        model = model_of(run, agent)
        settings = settings_of(run, agent)
        if run.config.call_model_input_filter is None:
            given = ModelInputData(deduplicated(self._input()), system)
        else:
            given = await self._filtered(system, self._input())
            given.input = deduplicated(given.input) if isinstance(given.input, list) else given.input
        conversation = run.conversation
        if conversation is not None:
            conversation.sent(given.input)
        if run.hooks is not None or agent.hooks is not None:
            await call_hooks(run, agent, "on_llm_start", "on_llm_start", run.context, agent, given.instructions, given.input)
        if run.session is not None:
            await save_input(run)
        named: dict[str, Any] = {
            "previous_response_id": None if conversation is None else conversation.previous_response_id,
            "conversation_id": None if conversation is None else conversation.conversation_id,
        }
        args = (given.instructions, given.input, settings, self._tools, self._schema, self._handoffs, self._tracing())

        async def again() -> None:
            if conversation is not None:
                conversation.take_back(given.input)
            if run.session is not None and conversation is not None:
                await rewind(run, given.input)

        unsafe = bool(self._tools) and any(isinstance(tool, ProgrammaticToolCallingTool) for tool in self._tools)
        if run.output is None:
            response = await answered(lambda: model.get_response(*args, **named, prompt=prompt), model, settings, again, named, unsafe=unsafe)
        else:
            attempts = [0]
            events = streamed(lambda: model.stream_response(*args, **named, prompt=prompt), model, settings, again, named, attempts, unsafe=unsafe)
            response = await self._collected(events, attempts, settings)
        run.context.usage.add(response.usage)
        if conversation is not None:
            conversation.sent(given.input)
            conversation.received(response)
        return response

    def _tracing(self) -> ModelTracing:
        config = self._run.config
        if config.tracing_disabled:
            return ModelTracing.DISABLED
        return ModelTracing.ENABLED if config.trace_include_sensitive_data else ModelTracing.ENABLED_WITHOUT_DATA

    def _input(self) -> list[Any]:
        state = self._run.state
        if self._run.conversation is not None:
            return self._run.conversation.prepare(state.original_input, state.generated_items)
        asked = ItemHelpers.input_to_new_input_list(state.original_input)
        if not state.generated_items:
            return model_input(asked, ())
        return model_input(asked, run_items_to_input(state.generated_items, without_ids=state.omits_reasoning_ids))

    async def _filtered(self, system: str | None, items: list[Any]) -> ModelInputData:
        run = self._run
        change: Any = run.config.call_model_input_filter
        from ..tracing.errors import attach_error  # noqa: PLC0415 -- few runs have a filter

        try:
            found = await maybe_await(change(CallModelData(ModelInputData(list(items), system), self._agent, run.context.context)))
        except Exception as error:
            attach_error("Error in call_model_input_filter", error=str(error))
            raise
        if not isinstance(found, ModelInputData):
            msg = "call_model_input_filter must return a ModelInputData instance"
            attach_error("Error in call_model_input_filter", error=msg)
            raise UserError(msg)
        return ModelInputData(list(found.input), found.instructions)

    async def _collected(self, events: AsyncIterator[Any], attempts: list[int], settings: ModelSettings) -> ModelResponse:
        """The response that the events amount to. Each is shown as it comes."""
        done: list[Any] = []
        found: ModelResponse | None = None
        async with aclosing(events) as stream:  # type: ignore[type-var]  # a generator
            async for event in stream:
                self._run.show(RawResponsesStreamEvent(event))
                kind = getattr(event, "type", None)
                if kind in _FAILED:
                    raise _failure(str(kind), event)
                if isinstance(event, ResponseOutputItemDoneEvent):
                    done.append(event.item)
                elif isinstance(event, ResponseCompletedEvent):
                    found = self._whole(event.response, done, attempts, settings)
        if found is None:
            msg = "Model did not produce a final response!"
            raise ModelBehaviorError(msg)
        return found

    def _whole(self, response: Response, done: list[Any], attempts: list[int], settings: ModelSettings) -> ModelResponse:
        if not response.output and done:
            response.output = list(done)
        usage = counted(usage_of_response(response), attempts[0])
        raw = None
        if settings.preserve_raw_usage:
            raw = getattr(response, "understudy_raw_usage", None) or (response.usage.model_dump(mode="json", exclude_unset=True) if response.usage else None)
        return ModelResponse(response.output, usage, response.id, getattr(response, "_request_id", None), raw)


def _failure(kind: str, event: Any) -> ModelBehaviorError:
    response = getattr(event, "response", None)
    details = getattr(getattr(response, "error", None), "message", None) or getattr(getattr(response, "incomplete_details", None), "reason", None)
    said = details or getattr(event, "message", None)
    return ModelBehaviorError(f"Responses stream ended with terminal event `{kind}`.{f' {said}' if said else ''}")
