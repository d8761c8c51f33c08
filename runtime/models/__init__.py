"""Chat models, behind one protocol.

    protocol                            what a model is, and what it is asked
    streaming                           any model as a stream; a model as one run sees it
    scripted                            a model that says what a test tells it to
    retry, failover                     asked again; several in the place of one
    rate, limited                       accounts of what may be spent; a model that keeps to them
    wire                                requests and replies without a client in between: a package
    openai_errors                       what the `openai` client raises, as errors of this package
    openai_parts, tool_call_deltas      media and schemas; tool calls that come in pieces
    openai_events                       the events of a stream
    openai_model                        what the two below have in common
    openai_chat                         chat completions, with openai_chat_request and openai_chat_reply
    openai_responses                    the Responses API, with openai_responses_request and openai_responses_reply
    openai_embedding                    embeddings
    env                                 the models that the environment names

It must never import `openai` before a model of it is first asked.
"""

from .env import model_from_env
from .failover import FailoverModel
from .limited import LimitedModel
from .openai_chat import OpenAIChatModel
from .openai_embedding import EmbeddingModel, OpenAIEmbeddingModel
from .openai_responses import OpenAIResponsesModel
from .protocol import ChatModel, ModelRequest, ModelSettings, OutputSchema, StreamingModel, StreamItem, ToolChoice, ToolSpec
from .retry import RetryModel
from .scripted import ScriptedModel, ToolCalls
from .streaming import answer_of, model_for_run, stream_of

__all__ = [
    "ChatModel",
    "EmbeddingModel",
    "FailoverModel",
    "LimitedModel",
    "ModelRequest",
    "ModelSettings",
    "OpenAIChatModel",
    "OpenAIEmbeddingModel",
    "OpenAIResponsesModel",
    "OutputSchema",
    "RetryModel",
    "ScriptedModel",
    "StreamItem",
    "StreamingModel",
    "ToolCalls",
    "ToolChoice",
    "ToolSpec",
    "answer_of",
    "model_for_run",
    "model_from_env",
    "stream_of",
]
