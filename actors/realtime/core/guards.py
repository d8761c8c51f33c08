"""Guardrails of a session, for the model's output and the user's input.

They run in parallel with the session, which waits for one only if `hold_audio` is set.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ....runtime.errors import UsageError
from ....runtime.maybe_await import maybe_await
from ....runtime.tasks import all_at_once
from ..agent import RealtimeAgent, guardrail_name
from ..events import RealtimeGuardrailTripped, RealtimeInputGuardrailTripped
from ..model_events import RealtimeModelAudioEvent
from ..model_inputs import RealtimeModelSendDelete
from .interruption import interrupt_active, interrupt_playback
from .responses import Response, Wish

if TYPE_CHECKING:
    from .session_core import SessionCore

__all__ = ["GuardrailResult", "InputGuards", "OutputGuards"]


@dataclass(frozen=True, slots=True)
class GuardrailResult:
    """The result of one guardrail."""

    guardrail: Any
    agent: RealtimeAgent
    agent_output: Any
    output: Any

    @property
    def input(self) -> Any:
        """The checked input, for an input guardrail."""
        return self.agent_output


async def _check(
    core: SessionCore, guards: Sequence[Any], agent: RealtimeAgent, text: str, on_error: str
) -> tuple[list[GuardrailResult], list[Exception]]:
    """Return the results that tripped, and the errors."""

    async def one(guard: Any) -> tuple[GuardrailResult | None, Exception | None]:
        name = guardrail_name(guard)
        with core.span("guardrail", guardrail=name, agent=agent.name) as opened:
            try:
                found = await maybe_await(
                    getattr(guard, "guardrail_function", guard)(core.context, agent, text)
                )
                tripped = found.tripwire_triggered
            except Exception as error:  # noqa: BLE001 -- shown to the consumer
                opened.fail(error)
                return (
                    GuardrailResult(guard, agent, text, error) if on_error == "trip" else None
                ), error
        return (GuardrailResult(guard, agent, text, found) if tripped else None), None

    results = await all_at_once(
        (one(guard) for guard in guards), f"a guardrail of agent {agent.name!r}"
    )
    return [found for found, _ in results if found is not None], [
        error for _, error in results if error is not None
    ]


@dataclass(slots=True)
class _ItemText:
    """The checked text of one item."""

    response: Response
    length: int = 0
    checked: int = 0
    running: bool = False
    ended: bool = False
    passed: int = 0
    held: list[tuple[RealtimeModelAudioEvent, float, int]] = field(default_factory=list)
    then: list[Callable[[], object]] = field(default_factory=list)


class OutputGuards:
    """Checks the model's output."""

    def __init__(self, core: SessionCore) -> None:
        self._core = core
        self._items: dict[str, _ItemText] = {}
        settings = core.config.get("guardrails_settings", {})
        self._debounce = settings.get("debounce_text_length", 100)
        self._on_error = settings.get("on_error", "skip")
        self._holds = settings.get("hold_audio", False)
        self._everywhere = core.config.get("output_guardrails") or []
        if not isinstance(self._debounce, int) or self._debounce < 1:
            msg = (
                "config['guardrails_settings']['debounce_text_length'] must be a number "
                f"of characters above 0, got {self._debounce!r}."
            )
            raise UsageError(msg)

    def _guards(self, response: Response) -> list[Any]:
        own = response.settings.agent.output_guardrails
        return (
            list(own)
            if not self._everywhere
            else list({id(one): one for one in (*own, *self._everywhere)}.values())
        )

    def holds(self, response: Response) -> bool:
        """Return whether audio of that response is withheld until its text was checked."""
        return self._holds and bool(self._guards(response))

    def hold(self, response: Response, event: RealtimeModelAudioEvent, ms: float) -> None:
        """Withhold audio until a check of its text has passed."""
        item = self._of(event.item_id, response)
        item.held.append((event, ms, max(item.length, 1)))
        self._look(event.item_id, item)

    def hold_end(self, item_id: str, show: Callable[[], object]) -> None:
        """Call `show` after the withheld audio of an item."""
        item = self._items.get(item_id)
        if item is None or not item.held:
            show()
        else:
            item.then.append(show)

    def _of(self, item_id: str, response: Response) -> _ItemText:
        found = self._items.get(item_id)
        if found is None:
            found = self._items[item_id] = _ItemText(response)
        return found

    def grew(self, item_id: str, response: Response, size: int) -> None:
        """Handle new text of an item."""
        if not self._everywhere and not response.settings.agent.output_guardrails:
            return
        item = self._of(item_id, response)
        item.length += size
        self._look(item_id, item)

    def item_ended(self, item_id: str) -> None:
        """Handle the end of an item's text."""
        item = self._items.get(item_id)
        if item is not None:
            item.ended = True
            self._look(item_id, item)

    def _look(self, item_id: str, item: _ItemText) -> None:
        new = item.length - item.checked
        due = new >= self._debounce or (item.ended and new) or (item.held and new)
        if item.running or item.response.tripped or not due:
            if item.ended and not item.running and not new:
                self._release(item_id, item)
            return
        core = self._core
        item.running, item.checked = True, item.length
        text, length = core.conversation.text(item_id), item.length
        response = item.response
        work = _check(core, self._guards(response), response.settings.agent, text, self._on_error)
        core.child(
            work,
            lambda found, error: self._checked(item_id, item, text, length, found, error),
            "output guardrails",
        )

    def _checked(
        self,
        item_id: str,
        item: _ItemText,
        text: str,
        length: int,
        found: Any,
        error: BaseException | None,
    ) -> None:
        core = self._core
        item.running = False
        tripped, errors = found if found is not None else ([], [error])
        for one in errors:
            core.error(one, code="guardrail_error")
        if tripped and not item.response.tripped:
            self._trip(item, text, tripped)
        elif not item.response.tripped:
            item.passed = length
            self._release(item_id, item)
            self._look(item_id, item)

    def _release(self, item_id: str, item: _ItemText) -> None:
        core = self._core
        whole = item.ended and item.checked == item.length and not item.running
        while item.held and (whole or item.held[0][2] <= item.passed):
            event, ms, _ = item.held.pop(0)
            if not item.response.interrupted:
                core.inbound.show_audio(event, ms)
        if not item.held:
            for show in item.then:
                show()
            item.then.clear()
            if whole and item.response.done:
                self._items.pop(item_id, None)

    def _trip(self, item: _ItemText, text: str, results: list[GuardrailResult]) -> None:
        core, response = self._core, item.response
        response.tripped = True
        for one in self._items.values():
            if one.response is response:
                one.held.clear()
                one.then.clear()
        core.show(RealtimeGuardrailTripped, guardrail_results=results, message=text)
        if core.responses.active is response:
            interrupt_active(core, cancel=True)
        else:
            interrupt_playback(core, response)
        if core.responses.generation == response.generation and core.responses.requested is None:
            core.inputs.give_feedback([guardrail_name(one.guardrail) for one in results])

    def response_ended(self, response: Response) -> None:
        """Release the items of a response that has ended."""
        for item_id, item in tuple(self._items.items()):
            if item.response is response:
                item.ended = True
                if response.interrupted or response.tripped:
                    item.held.clear()
                    self._items.pop(item_id, None)
                else:
                    self._look(item_id, item)


class InputGuards:
    """Checks the user's input."""

    def __init__(self, core: SessionCore) -> None:
        self._core = core
        self._on_error = core.config.get("guardrails_settings", {}).get("on_error", "skip")
        self._everywhere = core.config.get("input_guardrails") or []

    def of(self, agent: RealtimeAgent) -> list[Any]:
        return list({id(one): one for one in (*agent.input_guardrails, *self._everywhere)}.values())

    def is_strict(self, agent: RealtimeAgent) -> bool:
        """Return whether only checked input is answered."""
        return any(not getattr(one, "run_in_parallel", True) for one in self.of(agent))

    def check_text(self, text: str, then: Callable[[], object]) -> None:
        """Call `then` when a text has passed."""
        core = self._core
        agent = core.current.agent
        guards = self.of(agent)
        if not guards:
            then()
            return
        work = _check(core, guards, agent, text, self._on_error)
        core.child(
            work,
            lambda found, error: self._text_checked(text, then, found, error),
            "input guardrails",
        )

    def _results(self, found: Any, error: BaseException | None) -> list[GuardrailResult]:
        tripped, errors = found if found is not None else ([], [error])
        for one in errors:
            self._core.error(one, code="guardrail_error")
        results: list[GuardrailResult] = tripped
        return results

    def _text_checked(
        self, text: str, then: Callable[[], object], found: Any, error: BaseException | None
    ) -> None:
        results = self._results(found, error)
        if not results:
            then()
            return
        self._core.show(
            RealtimeInputGuardrailTripped, guardrail_results=results, message=text, item_id=None
        )
        self._core.inputs.give_feedback([guardrail_name(one.guardrail) for one in results])

    def heard(self, item_id: str, text: str | None) -> None:
        """Check the transcript of the user's speech. None means that it failed."""
        core = self._core
        agent = core.current.agent
        guards = self.of(agent)
        if not guards:
            return
        if text is None:
            if not self.is_strict(agent):
                return
            if self._on_error == "trip":
                self._tripped(item_id, "", [])
            else:
                core.responses.wish(Wish(items=(item_id,)))
            return
        work = _check(core, guards, agent, text, self._on_error)
        strict = self.is_strict(agent)
        core.child(
            work,
            lambda found, error: self._speech_checked(item_id, text, found, error, strict=strict),
            "input guardrails",
        )

    def _speech_checked(
        self, item_id: str, text: str, found: Any, error: BaseException | None, *, strict: bool
    ) -> None:
        results = self._results(found, error)
        if results:
            self._tripped(item_id, text, results)
        elif strict:
            self._core.responses.wish(Wish(items=(item_id,)))

    def _tripped(self, item_id: str, text: str, results: list[GuardrailResult]) -> None:
        core = self._core
        interrupt_active(core, cancel=True)
        core.outbox.put(RealtimeModelSendDelete(item_id))
        core.inputs.block_item(item_id)
        core.show(
            RealtimeInputGuardrailTripped, guardrail_results=results, message=text, item_id=item_id
        )
        core.inputs.give_feedback(
            [guardrail_name(one.guardrail) for one in results] or ["transcription failed"]
        )
