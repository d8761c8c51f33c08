"""Models of other libraries, which are not there.

Owns the errors that say so, and where to read on:

    any_llm_model   models of any-llm
    litellm_model   models of LiteLLM

It must never do anything else.
"""

from ...missing import nothing_in as _nothing_in

__all__: list[str] = []

__getattr__ = _nothing_in(__name__, "give the agent one of understudy's models: Agent(model=...)")
