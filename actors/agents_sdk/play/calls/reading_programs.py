"""Programs that run at the provider and call tools.

Owns: that each call of a program belongs to one that is there and has not ended. It must never run a program.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

from ...exceptions import ModelBehaviorError
from ...items import ToolCallItem, ToolCallOutputItem
from ...tool_names import part
from ...tracing.errors import attach_error
from ..steps import Asked

__all__ = ["Programs"]

_USED = "programmatic_tool_calling"


class Programs:
    """The programs of one reply, and of those before it."""

    def __init__(self, is_known: bool, earlier: Sequence[Any], outputs: Iterable[Any], agent_name: str) -> None:
        self._is_known = is_known
        self._agent_name = agent_name
        self._begun: set[str] = set()
        self._ended: set[str] = set()
        self._ending = {part(one, "call_id") for one in outputs if part(one, "type") == "program_output" and part(one, "status") == "completed"}
        for raw in chain(getattr(item, "raw_item", item) for item in earlier) if is_known else ():
            if part(raw, "type") == "program":
                self._begun.add(part(raw, "call_id"))
            elif part(raw, "type") == "program_output" and part(raw, "status") == "completed":
                self._ended.add(part(raw, "call_id"))

    def concern(self, output: Any, kind: str | None) -> bool:
        """Whether an output is a program, the end of one, or was called by one."""
        return kind in ("program", "program_output") or part(part(output, "caller"), "type") == "program"

    def check(self, output: Any, kind: str | None, asked: Asked, agent: Any) -> None:
        """Note what it is. Raises, if it belongs to no program."""
        if not self._is_known:
            asked.used.append(_USED)
            attach_error("Programmatic tool not found")
            msg = f"Model produced {kind} item without a programmatic_tool_calling tool."
            raise ModelBehaviorError(msg)
        call_id = part(output, "call_id")
        if kind == "program":
            if not isinstance(call_id, str) or not call_id:
                attach_error("Program call ID missing", call_id=call_id)
                msg = "Model produced program item without a valid call_id."
                raise ModelBehaviorError(msg)
            self._begun.add(call_id)
            asked.items.append(ToolCallItem(agent, output))
            asked.used.append(_USED)
        elif kind == "program_output":
            self._end(output, call_id, asked, agent)
        else:
            self._called(output)

    def _end(self, output: Any, call_id: Any, asked: Asked, agent: Any) -> None:
        if call_id not in self._begun:
            msg = "Model produced program_output item that does not match a parent program item."
            raise ModelBehaviorError(msg)
        if call_id in self._ended:
            msg = "Model produced program_output item whose parent program is already completed."
            raise ModelBehaviorError(msg)
        if part(output, "status") not in ("completed", "incomplete"):
            msg = "Model produced program_output item without a valid status."
            raise ModelBehaviorError(msg)
        if not isinstance(part(output, "result"), str):
            msg = "Model produced program_output item without a string result."
            raise ModelBehaviorError(msg)
        asked.items.append(ToolCallOutputItem(agent, output, part(output, "result")))
        asked.used.append(_USED)
        if part(output, "status") == "completed":
            self._ended.add(call_id)

    def _called(self, output: Any) -> None:
        parent = part(part(output, "caller"), "caller_id")
        if parent not in self._begun or parent in self._ended or parent in self._ending:
            attach_error("Program parent not found", caller_id=parent)
            msg = f"Agent {self._agent_name}: a program-owned tool call does not match an active parent program item."
            raise ModelBehaviorError(msg)
