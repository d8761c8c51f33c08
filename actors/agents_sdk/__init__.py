"""Programs of OpenAI's Agents SDK, run by the SDK and recorded by offbook.

Needs the extra `agents-sdk`.

    from agents import Agent, function_tool        # the SDK itself
    from offbook.agents_sdk import Runner          # the one changed line

    result = await Runner.run(agent, "Refund order 7", store=SQLiteStore("runs.db"),
                              run_id="order-7")

The SDK's loop runs inside an agent actor. Each call that it makes to a model, a tool or a session
is a step of the stored run, so another process can replay the loop from the recorded steps. No
behaviour of the SDK is reimplemented here.

Each module imports only from those listed above it:

    messages                        the SDK's items as messages, and back
    plain                           values of the SDK as plain data
    recording                       the steps of one run
    seams                           the wrapped functions of the SDK
    hooks                           hooks that a second attempt does not call
    results                         results that a store contains
    sdk_agent                       an agent of the SDK as an offbook definition
    native                          a native agent as an agent of the SDK
    store_session                   a session of the SDK in a store
    runner                          `Runner`, `OffbookRunner`, `install`
"""

from importlib.metadata import PackageNotFoundError as _PackageNotFoundError
from importlib.metadata import version as _version

_OLDEST = (0, 22)

try:
    _installed = _version("openai-agents")
except _PackageNotFoundError:
    _msg = (
        "offbook.agents_sdk needs the package openai-agents. Install it: pip install "
        "'offbook[agents-sdk]'."
    )
    raise ImportError(_msg, name="agents") from None
if tuple(int(part) for part in _installed.split(".")[:2] if part.isdigit()) < _OLDEST:
    _msg = (
        f"offbook.agents_sdk needs openai-agents 0.22 or newer, got {_installed}. Update it: pip "
        "install -U 'offbook[agents-sdk]'."
    )
    raise ImportError(_msg, name="agents")

from .native import as_sdk_agent  # noqa: E402 -- after the check that the SDK is installed
from .recording import ReplayMismatch, idempotency_key  # noqa: E402
from .runner import OffbookRunner, Runner, install  # noqa: E402
from .sdk_agent import SdkAgent  # noqa: E402
from .seams import wrap_the_sdk as _wrap_the_sdk  # noqa: E402
from .store_session import StoreSession  # noqa: E402

_wrap_the_sdk()

__all__ = [
    "OffbookRunner",
    "ReplayMismatch",
    "Runner",
    "SdkAgent",
    "StoreSession",
    "as_sdk_agent",
    "idempotency_key",
    "install",
]
