"""The versions of the JSON of a run's state.

Owns: which of them can be read. The form is the SDK's, so that a state which it has written goes on here, and the other way round. It must never read one.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from ..exceptions import UserError

__all__ = ["CURRENT_SCHEMA_VERSION", "SCHEMA_VERSION_SUMMARIES", "SUPPORTED_SCHEMA_VERSIONS", "check_version"]

CURRENT_SCHEMA_VERSION: Final = "1.16"
SCHEMA_VERSION_SUMMARIES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "1.0": "The first form: a run that waits for approvals can be kept.",
        "1.1": "The same; older versions can be read from now on.",
        "1.2": "Whether reasoning items are sent with their ids.",
        "1.3": "A trace goes on without a second beginning.",
        "1.4": "The id of the request of each response.",
        "1.5": "Searches for tools, and more about tools.",
        "1.6": "What a rejection says to the model.",
        "1.7": "Agents of the same name are told apart.",
        "1.8": "Keys for the provider's cache of prompts.",
        "1.9": "Custom tools that wait, and where tools come from.",
        "1.10": "A run may have any number of turns.",
        "1.11": "The program's own data on results of tools.",
        "1.12": "Tokens that were written to a cache.",
        "1.13": "Programs at the provider, and which items a folded history holds.",
        "1.14": "Approvals of hosted MCP tools belong to a server.",
        "1.15": "The identity of each call, and input that waits for the next call of the model.",
        "1.16": "The decision about one call goes before that about all calls of its tool.",
    }
)
SUPPORTED_SCHEMA_VERSIONS: Final = frozenset(SCHEMA_VERSION_SUMMARIES)


def check_version(data: Mapping[str, Any]) -> None:
    """Raise, if the JSON is of a version that cannot be read."""
    version = data.get("$schemaVersion")
    if not version:
        msg = "Run state is missing schema version"
        raise UserError(msg)
    if version not in SUPPORTED_SCHEMA_VERSIONS:
        known = ", ".join(sorted(SUPPORTED_SCHEMA_VERSIONS, key=lambda one: int(one.partition(".")[2])))
        msg = f"Run state schema version is not supported: {version}. Supported are {known}; new states are written as {CURRENT_SCHEMA_VERSION}."
        raise UserError(msg)
