"""Guardrails at work.

Owns: that they look at the same time, and that the first that trips ends the others. Whatever has been found by then is noted. It must never say what a tripped
one does to the run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any

from ..exceptions import InputGuardrailTripwireTriggered, OutputGuardrailTripwireTriggered
from ..guardrail import InputGuardrail, OutputGuardrail
from ..tracing.create import guardrail_span
from ..tracing.errors import attach_error, attach_to
from .live import LiveRun

__all__ = ["check_input", "check_output"]


async def check_input(run: LiveRun, agent: Any, guardrails: Sequence[InputGuardrail[Any]], given: Any, span: Any = None) -> None:
    """Raise, if one of them does not allow the input."""

    async def look(guardrail: InputGuardrail[Any]) -> Any:
        if not run.traced:
            return await guardrail.run(agent, given, run.context)
        with guardrail_span(guardrail.get_name()) as own:
            result = await guardrail.run(agent, given, run.context)
            own.span_data.triggered = result.output.tripwire_triggered
            return result

    given = given if isinstance(given, str) else list(given)
    tripped = await _first_tripped([look(one) for one in guardrails], run.state.input_guardrail_results)
    if tripped is not None:
        data = {"guardrail": tripped.guardrail.get_name(), **({"type": "input_guardrail"} if run.output is not None else {})}
        if run.output is not None and span is not None:
            attach_to(span, "Guardrail tripwire triggered", data)
        else:
            attach_error("Guardrail tripwire triggered", **data)
        error = InputGuardrailTripwireTriggered(tripped)
        if run.output is not None:
            run.output.fail(error)
        raise error


async def check_output(run: LiveRun, agent: Any, guardrails: Sequence[OutputGuardrail[Any]], output: Any) -> None:
    """Raise, if one of them does not allow the output."""

    async def look(guardrail: OutputGuardrail[Any]) -> Any:
        if not run.traced:
            return await guardrail.run(run.context, agent, output)
        with guardrail_span(guardrail.get_name()) as own:
            result = await guardrail.run(run.context, agent, output)
            own.span_data.triggered = result.output.tripwire_triggered
            return result

    tripped = await _first_tripped([look(one) for one in guardrails], run.state.output_guardrail_results)
    if tripped is not None:
        attach_error("Guardrail tripwire triggered", guardrail=tripped.guardrail.get_name())
        raise OutputGuardrailTripwireTriggered(tripped)


async def _first_tripped(works: list[Coroutine[Any, Any, Any]], results: list[Any]) -> Any:
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        for done in asyncio.as_completed(tasks):
            result = await done
            results.append(result)
            if result.output.tripwire_triggered:
                return result
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    return None
