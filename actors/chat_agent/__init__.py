"""The agent driven by a chat model: the loop of model and tools.

Each module imports only from those listed above it:

    tool_call         one call of a tool: its retries, its timeout, the log record of its failure
    tool_round        one round of tool calls
    answer            the form that a final answer must have
    overridden        an agent with other models and tools, for a test
    toolsets          an agent whose tools become known only when it runs
    setup             the parts of a model's request that do not depend on the run
    said              readings of the agent's messages so far
    model_call        one call of the model, with its hooks, middleware and stream
    loop              model, tools, model, … until a reply has no calls; where `after_model` and
                      `after_tools` end it
    chat_model_agent  `ChatModelAgent`, the class that users instantiate

A definition stores nothing of a run.
"""
