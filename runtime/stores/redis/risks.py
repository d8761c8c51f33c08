"""Redis settings that can lose data. They are reported, and never changed."""

from __future__ import annotations

from typing import Any, Protocol

__all__ = ["risks_of"]


class _Client(Protocol):
    def execute_command(self, *words: object) -> Any: ...


def risks_of(client: _Client) -> list[str]:
    """Return a sentence for each risk. Settings that this user may not read are not reported."""
    about, saves = _info(client), _setting(client, "save")
    found = []
    policy = about.get("maxmemory_policy", "noeviction")
    if policy != "noeviction" and about.get("maxmemory", "0") != "0":
        found.append(
            f"its maxmemory-policy is {policy}: when its memory is full, it evicts keys, so runs "
            "are lost or started again. Set maxmemory-policy noeviction."
        )
    if about.get("aof_enabled") == "0" and saves == "":
        found.append(
            "it stores nothing on disk (appendonly no, and no save points): a restart loses all "
            "runs and sessions. Set appendonly yes."
        )
    return found


def _info(client: _Client) -> dict[str, str]:
    found: dict[str, str] = {}
    for section in ("memory", "persistence"):
        said = _asked(client, "INFO", section)
        if isinstance(said, dict):  # some clients parse the answer
            found.update((str(name), str(value)) for name, value in said.items())
        elif said is not None:
            lines = (line.partition(":") for line in _text(said).splitlines())
            found.update((name, value.strip()) for name, colon, value in lines if colon)
    return found


def _setting(client: _Client, name: str) -> str | None:
    said = _asked(client, "CONFIG", "GET", name)
    if isinstance(said, dict):
        return _text(said.get(name) if name in said else said.get(name.encode()))
    return _text(said[1]) if isinstance(said, list) and len(said) > 1 else None


def _asked(client: _Client, *words: str) -> Any:
    try:
        return client.execute_command(*words)
    except Exception as error:
        # For example on a managed server
        if type(error).__name__ in (
            "ResponseError",
            "NoPermissionError",
        ):
            return None
        raise


def _text(said: object) -> str:
    return (
        said.decode(errors="replace")
        if isinstance(said, bytes)
        else ""
        if said is None
        else str(said)
    )
