"""What agents are told of handoffs.

Owns: the words, which are the SDK's own: prompts that were tuned with them stay as they are. It must never change a prompt but in front.
"""

from typing import Final

__all__ = ["RECOMMENDED_PROMPT_PREFIX", "prompt_with_handoff_instructions"]

RECOMMENDED_PROMPT_PREFIX: Final = (
    "# System context\nYou are part of a multi-agent system called the Agents SDK, designed to make agent coordination and execution easy. Agents uses two "
    "primary abstraction: **Agents** and **Handoffs**. An agent encompasses instructions and tools and can hand off a conversation to another agent when "
    "appropriate. Handoffs are achieved by calling a handoff function, generally named `transfer_to_<agent_name>`. Transfers between agents are handled "
    "seamlessly in the background; do not mention or draw attention to these transfers in your conversation with the user.\n"
)


def prompt_with_handoff_instructions(prompt: str) -> str:
    """The prompt, behind what a model should know of handoffs."""
    return f"{RECOMMENDED_PROMPT_PREFIX}\n\n{prompt}"
