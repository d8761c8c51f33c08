"""Models for tests of programs.

Owns a model that answers by a script. Its files, each importing only from those above it:

    model_script    the steps of a script
    scripted_events an answer as a stream of events
    model           `ScriptedModel`
    sandbox         what is refused of sandboxes

It must never call anything outside.
"""

from .model import ScriptedModel, assistant_message, function_call
from .model_script import InvalidModelStep, ModelCall, ModelScriptError, ModelStep, ModelStepSpec, UnconsumedModelSteps, UnexpectedModelCall
from .sandbox import scripted_sandbox_session

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
