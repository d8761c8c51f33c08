"""A native agent as an agent of the SDK: the target of a handoff, or a tool."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

import agents
from agents import Model, ModelResponse, Usage
from openai.types.responses import Response, ResponseCompletedEvent

from ...runtime.data.run_result import RunStatus
from ...runtime.errors import AgentError
from ...runtime.runner import Runner
from .messages import messages_of_items, output_of_message

if TYPE_CHECKING:
    from ..agent import Agent

__all__ = ["as_sdk_agent"]


class _NativeModel(Model):
    """Runs a native agent as a model of the SDK.

    The whole run is one reply, and one recorded step.
    """

    def __init__(self, agent: Agent) -> None:
        self._agent = agent

    async def get_response(
        self, system_instructions: str | None, input: Any, *_: Any, **__: Any
    ) -> ModelResponse:
        del system_instructions
        result = await Runner(self._agent).run(messages_of_items(input))
        result.raise_for_error()
        if result.status is not RunStatus.COMPLETED or result.final_message is None:
            msg = (
                f"the native agent {self._agent.name!r} is {result.status.value} inside a "
                "run of the SDK, which cannot wait for it. Move the approval to a tool of "
                "the SDK, or run the native agent by itself."
            )
            raise AgentError(msg, agent=self._agent.name)
        used = result.usage
        usage = Usage(
            requests=used.requests, input_tokens=used.input_tokens, output_tokens=used.output_tokens
        )
        usage.total_tokens = used.input_tokens + used.output_tokens
        return ModelResponse(
            output=output_of_message(result.final_message), usage=usage, response_id=None
        )

    async def stream_response(self, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        reply = await self.get_response(*args, **kwargs)
        response = Response(
            id="native",
            created_at=0,
            model=self._agent.name,
            object="response",
            output=reply.output,
            parallel_tool_calls=True,
            tool_choice="auto",
            tools=[],
        )
        yield ResponseCompletedEvent(
            type="response.completed", sequence_number=0, response=response
        )


def as_sdk_agent(agent: Agent) -> agents.Agent[Any]:
    """Return a native agent as an agent of the SDK, for `handoffs=[...]` or `.as_tool(...)`."""
    return agents.Agent(
        name=agent.name, handoff_description=agent.description or None, model=_NativeModel(agent)
    )
