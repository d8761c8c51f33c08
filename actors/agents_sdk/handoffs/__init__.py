"""Handoffs, by the SDK's interface.

Owns what a handoff is, and what the agent is given that takes over. Its files, each importing only from those above it:

    input_data      what a filter is given, and gives back
    owned           which items a folded history holds as they are
    transcript      a conversation as lines of a summary, and back
    history         the folding of what came before
    handoff         `Handoff`, `handoff`

It must never carry one out: that is the turn's.
"""

from .handoff import Handoff, OnHandoffWithInput, OnHandoffWithoutInput, THandoffInput, handoff
from .history import (
    default_handoff_history_mapper,
    get_conversation_history_wrappers,
    nest_handoff_history,
    reset_conversation_history_wrappers,
    set_conversation_history_wrappers,
)
from .input_data import HandoffHistoryMapper, HandoffInputData, HandoffInputFilter

__all__ = [
    "Handoff",
    "HandoffHistoryMapper",
    "HandoffInputData",
    "HandoffInputFilter",
    "OnHandoffWithInput",
    "OnHandoffWithoutInput",
    "THandoffInput",
    "default_handoff_history_mapper",
    "get_conversation_history_wrappers",
    "handoff",
    "nest_handoff_history",
    "reset_conversation_history_wrappers",
    "set_conversation_history_wrappers",
]
