"""Ids and times of traces.

Owns: their form. It must never keep one.
"""

import uuid
from datetime import UTC, datetime

__all__ = ["gen_group_id", "gen_span_id", "gen_trace_id", "time_iso"]


def gen_trace_id() -> str:
    """An id for a trace."""
    return f"trace_{uuid.uuid4().hex}"


def gen_span_id() -> str:
    """An id for a span."""
    return f"span_{uuid.uuid4().hex[:24]}"


def gen_group_id() -> str:
    """An id for several traces that belong together."""
    return f"group_{uuid.uuid4().hex[:24]}"


def time_iso() -> str:
    """Now, as traces say it."""
    return datetime.now(UTC).isoformat()
