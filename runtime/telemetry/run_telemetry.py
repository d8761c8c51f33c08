"""The observer of one run: its spans, metrics, and log records about starts and ends.

The module defines how spans nest, and their attributes. A `RunTelemetry` exists only if something
observes the run. It never waits, and never changes the run.
"""

from __future__ import annotations

from collections.abc import Mapping
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final, Protocol

from ..data.run_result import RunStatus
from ..log import loggers
from .content import as_json, text_of_messages
from .meters import Meters
from .opening import Opener, OpenSpan

if TYPE_CHECKING:
    from ..data.agent_input import AgentInput
    from ..data.chat import Message, ToolCall
    from ..data.interrupt import InterruptContext
    from ..data.outcome import Outcome
    from ..data.run_result import RunResult

__all__ = ["RunTelemetry", "WatchedAgent", "WatchedRun"]

_SLOW_WRITE: Final = 0.1
"""Seconds after which a write to the store gets a span."""


class WatchedRun(Protocol):
    """The facts of an observed run. Its id may change when its checkpoint is found."""

    @property
    def run_id(self) -> str: ...
    @property
    def session_id(self) -> str | None: ...


class WatchedAgent(Protocol):
    """One invocation of an agent."""

    @property
    def id(self) -> str: ...
    @property
    def agent_call(self) -> Any: ...
    @property
    def node(self) -> Any: ...


class RunTelemetry:
    """The observer of one run. Used on its loop, except for `open` spans of tools in threads."""

    __slots__ = (
        "_agent",
        "_began",
        "_contexts",
        "_has_begun",
        "_open",
        "_opener",
        "_root",
        "_run",
        "meters",
    )

    def __init__(
        self, run: WatchedRun, agent: str, opener: Opener | None, meters: tuple[Meters, ...]
    ) -> None:
        self._run = run
        self._agent = agent
        self._opener = opener  # None: nothing is traced
        self.meters = meters
        self._root: OpenSpan | None = None
        self._contexts: dict[Any, Any] = {}  # parent contexts of running agents and calls
        self._open: dict[str, OpenSpan] = {}  # of running agents
        self._began = perf_counter()
        self._has_begun = False

    @property
    def content(self) -> bool:
        """True if spans contain messages."""
        return self._opener is not None and self._opener.content

    # --- the run ---

    def begin(self, asked: AgentInput) -> str | None:
        """Note that the run was created.

        Returns the name of its span, to be stored with the run.
        """
        opener = self._opener
        for meter in self.meters:
            meter.run_began(self._agent)
        if opener is None:
            return None
        attributes: dict[str, Any] = {
            "gen_ai.operation.name": "invoke_workflow",
            "gen_ai.workflow.name": self._agent,
        }
        if opener.content and asked.messages:
            attributes |= {
                "gen_ai.input.messages": as_json(asked.messages),
                "input.value": text_of_messages(asked.messages),
            }
        self._root = opener.open(f"invoke_workflow {self._agent}", attributes, stays=True)
        return None if self._root.span is None else opener.name_of(self._root.span)

    def play(self, before: str | None, *, recovered: bool, resumed: bool) -> None:
        """Note that its agents start.

        `before` is the span of the part that it continues, if any.
        """
        run = self._run
        self._has_begun = True
        loggers.run.debug(
            "Run %s of %s %s.",
            run.run_id,
            self._agent,
            "is resumed" if resumed else "is recovered" if recovered else "begins",
        )
        if recovered:
            for meter in self.meters:
                meter.recovered(self._agent)
        opener, root = self._opener, self._root
        if opener is None or root is None or root.span is None:
            return
        link = opener.link(before)
        if link is not None:
            root.span.add_link(link, {"offbook.link": "before"})
        if resumed or recovered:
            links = None if link is None else [opener.api.trace.Link(link)]
            opener.instant(
                f"{'resume' if resumed else 'recover'} {self._agent}",
                self._names(),
                root.context,
                links,
            )

    def _names(self) -> dict[str, Any]:
        run = self._run
        names: dict[str, Any] = {"offbook.run_id": run.run_id}
        if run.session_id is not None:
            names |= {"gen_ai.conversation.id": run.session_id, "session.id": run.session_id}
        return names

    def interrupted(self, contexts: tuple[InterruptContext, ...]) -> None:
        """Note that the run waits for these interrupts."""
        loggers.run.debug(
            "Run %s of %s waits for %d answers.", self._run.run_id, self._agent, len(contexts)
        )
        if self._opener is None or self._root is None:
            return
        for one in contexts:
            address = "/".join(step.name for step in one.address)
            self._opener.instant(
                "interrupt",
                {
                    "offbook.interrupt.id": one.id,
                    "offbook.interrupt.address": address,
                    **self._names(),
                },
                self._root.context,
            )

    def lost(self) -> None:
        """Note that another process has claimed the run."""
        for meter in self.meters:
            meter.lease_lost(self._agent)

    def end(
        self,
        result: RunResult | None,
        problem: BaseException | None,
        *,
        in_session: bool,
        followed: bool,
    ) -> None:
        """Close the observation when the run has fully ended.

        `followed`: the run belongs to another process or had already ended, and was only followed.
        """
        seconds, status = (
            perf_counter() - self._began,
            "refused" if result is None else "followed" if followed else result.status.value,
        )
        has_failed = (
            result is not None
            and result.status in (RunStatus.FAILED, RunStatus.CANCELLED)
            and not followed
        )
        failure = result.error if result is not None and has_failed else problem
        loggers.run.debug(
            "Run %s of %s ends after %.3f s: %s.", self._run.run_id, self._agent, seconds, status
        )
        for meter in self.meters:
            meter.run_ended(
                self._agent,
                status,
                seconds,
                None if failure is None else type(failure).__qualname__,
                in_session=in_session,
            )
        for invocation_id in tuple(self._open):
            self._break_off(invocation_id)
        self._contexts.clear()
        root, self._root = self._root, None
        if root is None:
            return
        said: dict[str, Any] = {"offbook.status": status, **self._names()}
        if result is not None:
            usage = result.usage
            said |= {
                "gen_ai.usage.input_tokens": usage.input_tokens,
                "gen_ai.usage.output_tokens": usage.output_tokens,
                "offbook.agent": result.last_agent,
            }
            if self.content and result.final_message is not None:
                said |= {
                    "gen_ai.output.messages": as_json((result.final_message,)),
                    "output.value": result.final_message.text,
                }
        root.set(said)
        if failure is not None:
            root.fail(failure)
        root.close()

    # --- agents ---

    def agent_begins(self, invocation: WatchedAgent) -> None:
        name = invocation.node.name
        loggers.agent.debug("Agent %s begins.", name)
        opener = self._opener
        if opener is None:
            return
        self._break_off(invocation.id)  # it was started before, and its actor has failed
        attributes = {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.name": name,
            "gen_ai.agent.id": invocation.id,
            "offbook.run_id": self._run.run_id,
        }
        if self._run.session_id is not None:
            attributes["gen_ai.conversation.id"] = self._run.session_id
        opened = opener.open(
            f"invoke_agent {name}", attributes, self._around(invocation.agent_call), stays=True
        )
        self._contexts[invocation.id] = opened.context
        self._open[invocation.id] = opened

    def agent_ends(self, invocation: WatchedAgent, outcome: Outcome) -> None:
        loggers.agent.debug("Agent %s ends: %s.", invocation.node.name, outcome.kind)
        opened = self._open.pop(invocation.id, None)
        if opened is None:
            return
        del self._contexts[invocation.id]
        if outcome.kind != "finished":
            opened.set({"offbook.outcome": outcome.kind})
        if outcome.error is not None:
            opened.fail(outcome.error)
        opened.close()

    def _break_off(self, invocation_id: str) -> None:
        """End the span of an agent whose actor has ended without a report."""
        opened = self._open.pop(invocation_id, None)
        if opened is not None:
            opened.fail("its actor has failed, or was stopped")
            opened.close()

    def _around(self, agent_call: Any) -> Any:
        """Return the parent span for an agent that holds that agent call.

        This is the span of the call that it answers, of its caller, or of the run.
        """
        parent = agent_call.parent
        found = None
        if parent is not None and agent_call.tool is not None:
            found = self._contexts.get((parent.id, agent_call.tool.call_id))
        if found is None and parent is not None:
            found = self._contexts.get(parent.id)
        return found if found is not None or self._root is None else self._root.context

    def transferred(self, invocation: WatchedAgent, to_agent: str) -> None:
        """Note a transfer without a handoff; a handoff has a separate span."""
        loggers.run.debug("Agent %s transfers to %s.", invocation.node.name, to_agent)
        if self._opener is not None:
            names = {"offbook.from_agent": invocation.node.name, "offbook.to_agent": to_agent}
            self._opener.instant("transfer", names, self._around(invocation.agent_call))

    # --- actions of agents ---

    def open(self, name: str, attributes: Mapping[str, Any], *, client: bool = False) -> OpenSpan:
        """Open a span in the current context."""
        if self._opener is None:
            return OpenSpan(None, None, None, None)
        return self._opener.open(name, dict(attributes), client=client)

    def tool_begins(self, invocation: WatchedAgent, call: ToolCall) -> OpenSpan:
        loggers.tools.debug("Tool %s is called (%s).", call.name, call.id)
        attributes = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": call.name,
            "gen_ai.tool.call.id": call.id,
            "gen_ai.tool.type": "function",
        }
        if self.content:
            attributes |= {
                "gen_ai.tool.call.arguments": call.arguments,
                "input.value": call.arguments,
            }
        opened = self.open(f"execute_tool {call.name}", attributes)
        if opened.span is not None:
            self._contexts[invocation.id, call.id] = opened.context
        return opened

    def tool_ends(
        self,
        invocation: WatchedAgent,
        call: ToolCall,
        opened: OpenSpan,
        message: Message | None,
        error: BaseException | None,
        *,
        is_known: bool,
    ) -> None:
        """Close the span of a tool call.

        `message` is None if the call waits for an answer, or if its failure is the agent's. A model
        may call a tool that does not exist; metrics do not contain its name.
        """
        self._contexts.pop((invocation.id, call.id), None)
        if message is not None and self.content:
            opened.set({"gen_ai.tool.call.result": message.text, "output.value": message.text})
        if error is not None:
            opened.fail(error)
        elif message is None:
            opened.set({"offbook.interrupted": True})
        seconds = opened.close()
        loggers.tools.debug("Tool %s ends after %.3f s (%s).", call.name, seconds, call.id)
        for meter in self.meters:
            meter.tool_called(
                call.name if is_known else "unknown",
                invocation.node.name,
                seconds,
                None if error is None else type(error).__qualname__,
            )

    def guardrail(self, name: str, what: str, target: str | None = None) -> OpenSpan:
        attributes = {"offbook.guardrail.name": name, "offbook.guardrail.kind": what}
        if target is not None:
            attributes["gen_ai.tool.name"] = target
        return self.open(f"guardrail {name}", attributes)

    def guarded(self, opened: OpenSpan, error: BaseException | None, *, tripped: bool) -> None:
        opened.set({"offbook.guardrail.tripped": tripped})
        if error is not None and not tripped:
            opened.fail(error)
        opened.close()

    def store_wrote(self, seconds: float) -> None:
        """Note the duration of a write to the store."""
        for meter in self.meters:
            meter.store_wrote(seconds)
        if seconds > _SLOW_WRITE:
            loggers.durability.info("A write of run %s took %.3f s.", self._run.run_id, seconds)
            if self._opener is not None:
                root = self._root
                self._opener.slow(
                    "store write", seconds, self._names(), None if root is None else root.context
                )
