"""The SDK's own tracing would send spans from a thread of its own."""

import agents
import pytest


@pytest.fixture(autouse=True)
def _no_tracing():
    agents.set_tracing_disabled(True)
