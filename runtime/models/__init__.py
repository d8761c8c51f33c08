"""Chat models, behind one protocol. `openai` is only imported when one of its models is first
called.

    protocol                            the protocol of a model, and its requests
    streaming                           streaming for any model; a model's view for one run
    scripted                            a model that returns canned replies, for tests
    retry, failover                     retries; fallback to other models
    rate, limited                       rate limits; a model that observes them
    wire                                a package: direct requests over HTTP, without a client
    openai_errors                       translation of the `openai` client's errors
    openai_parts, tool_call_deltas      media and schemas; assembly of streamed tool calls
    openai_events                       the events of a stream
    openai_model                        the common base of the two below
    openai_chat                         chat completions, with openai_chat_request and
                                        openai_chat_reply
    openai_responses                    the Responses API, with openai_responses_request and
                                        openai_responses_reply
    openai_embedding                    embeddings
    env                                 models configured by environment variables
"""

from .env import model_from_env
from .failover import FailoverModel
from .limited import LimitedModel
from .openai_chat import OpenAIChatModel
from .openai_embedding import EmbeddingModel, OpenAIEmbeddingModel
from .openai_responses import OpenAIResponsesModel
from .protocol import (
    ChatModel,
    ModelRequest,
    ModelSettings,
    OutputSchema,
    StreamingModel,
    StreamItem,
    ToolChoice,
    ToolSpec,
)
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
