"""Models for tests of programs.

Owns a model that answers by a script. Its files, each importing only from those above it:

    model_script    the steps of a script
    scripted_events an answer as a stream of events
    model           `ScriptedModel`

It must never call anything outside.
"""

from ..missing import refuse
from .model import ScriptedModel, assistant_message, function_call
from .model_script import InvalidModelStep, ModelCall, ModelScriptError, ModelStep, ModelStepSpec, UnconsumedModelSteps, UnexpectedModelCall

__all__ = [
    "InvalidModelStep",
    "ModelCall",
    "ModelScriptError",
    "ModelStep",
    "ModelStepSpec",
    "ScriptedModel",
    "UnconsumedModelSteps",
    "UnexpectedModelCall",
    "assistant_message",
    "function_call",
    "scripted_sandbox_session",
]


def scripted_sandbox_session(steps: object = (), **options: object) -> object:
    """Refused: there are no sandboxes here."""
    refuse("testing.scripted_sandbox_session")
