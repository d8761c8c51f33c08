"""Models, as the SDK sees them.

Owns the interface of a model, those of OpenAI, and the way to understudy's own. Its files, each importing only from those above it:

    interface       `Model`, `ModelProvider`, `ModelTracing`
    default_models  the model that agents have which name none
    settings        which client, key and API are used if nothing else is said
    error_facts     what an error of a provider says
    attempts        calls that are made again
    tools           tools and handoffs, as the Responses API is told of them
    openai_responses `OpenAIResponsesModel`
    completion_items completions as items
    openai_chatcompletions `OpenAIChatCompletionsModel`
    understudy_model understudy's models, by this interface
    openai_provider `OpenAIProvider`
    multi_provider  `MultiProvider`
    openai_agent_registration what OpenAI is told of a program

It must never keep a conversation.
"""

from .default_models import get_default_model, get_default_model_settings, gpt_5_reasoning_settings_required, is_gpt_5_default
from .interface import Model, ModelProvider, ModelTracing

__all__ = [
    "Model",
    "ModelProvider",
    "ModelTracing",
    "get_default_model",
    "get_default_model_settings",
    "gpt_5_reasoning_settings_required",
    "is_gpt_5_default",
]
