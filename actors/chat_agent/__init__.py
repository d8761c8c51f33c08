"""The agent that a chat model plays.

Owns the loop of model and tools. Its files, each importing only from those above it:

    tool_call       one call of a tool: its retries, its timeout, what the log says of its failure
    tool_round      one round of tool calls
    answer          the form that a final answer must have
    overridden      an agent with other models and tools, for a test
    toolsets        an agent whose tools are known only when it plays
    setup           what the model is shown
    said            what the agent has said so far, read
    asking          one call of the model, with what is around it
    loop            model, tools, model, … until a reply has no calls; where `after_model` and `after_tools` end it
    chat_model_agent `ChatModelAgent`, what users make

It must never keep anything of a run in a definition.
"""
