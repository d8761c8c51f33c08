"""What shells have written, as the model is given it.

Owns: the reading of an executor's outputs, their limit, and their text. It must never execute anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ...tool.local_tools import ShellCallOutcome, ShellCommandOutput

__all__ = ["shell_entries", "truncated"]


def shell_entries(outputs: Iterable[Any], most: int | None) -> tuple[list[dict[str, Any]], str]:
    """The outputs as entries of an item, and as one text."""
    found = [_read(one) for one in outputs]
    if most is not None:
        left = most
        for one in found:
            one.stdout = one.stdout[:left]
            left -= len(one.stdout)
            one.stderr = one.stderr[:left]
            left -= len(one.stderr)
    return [_entry(one) for one in found], "\n\n".join(_text(one) for one in found) or "(no output)"


def _read(entry: Any) -> ShellCommandOutput:
    if isinstance(entry, ShellCommandOutput):
        return ShellCommandOutput(entry.stdout, entry.stderr, entry.outcome, entry.command, entry.provider_data)
    said: Mapping[str, Any] = entry
    outcome, kind, code = said.get("outcome"), "exit", said.get("exit_code")
    if isinstance(outcome, Mapping):
        kind, code = "timeout" if outcome.get("type") == "timeout" else "exit", outcome.get("exit_code")
    else:
        kind = "timeout" if str(said.get("status") or "").lower() == "timeout" else "exit"
        code = {"failure": 1, "success": 0}.get(str(outcome), code)
    command = said.get("command")
    how = ShellCallOutcome("timeout" if kind == "timeout" else "exit", _code(code))
    return ShellCommandOutput(
        str(said.get("stdout") or ""), str(said.get("stderr") or ""), how, None if command is None else str(command), said.get("provider_data")
    )


def _code(value: Any) -> int | None:
    try:
        return None if value is None else int(value)
    except (TypeError, ValueError):
        return None


def _entry(output: ShellCommandOutput) -> dict[str, Any]:
    found: dict[str, Any] = {"stdout": output.stdout, "stderr": output.stderr, "status": output.status, "outcome": {"type": output.outcome.type}}
    if output.outcome.type == "exit":
        found["outcome"]["exit_code"] = output.exit_code
        if output.exit_code is not None:
            found["exit_code"] = output.exit_code
    more = {"command": output.command, "provider_data": output.provider_data or None}
    return {**found, **{name: value for name, value in more.items() if value is not None}}


def _text(output: ShellCommandOutput) -> str:
    lines = [f"$ {output.command}"] if output.command else []
    stdout, stderr = output.stdout.rstrip("\n"), output.stderr.rstrip("\n")
    lines += [stdout] if stdout else []
    if stderr:
        lines += ["", "stderr:", stderr] if stdout else ["stderr:", stderr]
    if output.exit_code not in (None, 0):
        lines.append(f"exit code: {output.exit_code}")
    if output.status == "timeout":
        lines.append("status: timeout")
    return "\n".join(lines).strip() or "(no output)"


def truncated(entries: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The entries as the provider takes them: each with how it has ended, and without what only the program keeps."""
    found = []
    for entry in entries:
        kept = {name: value for name, value in entry.items() if name not in ("status", "provider_data", "exit_code", "command")}
        outcome, code = entry.get("outcome"), _code(entry.get("exit_code"))
        if isinstance(outcome, str):
            late = entry.get("status") == "timeout"
            kept["outcome"] = {"type": "timeout"} if late else {"type": "exit", "exit_code": code if code is not None else int(outcome == "failure")}
        elif isinstance(outcome, Mapping):
            said = {name: value for name, value in outcome.items() if name != "status"}
            if said.get("type") != "timeout":
                said.setdefault("exit_code", code if code is not None else int(outcome.get("status") == "failure"))
            kept["outcome"] = said
        found.append(kept)
    return found
