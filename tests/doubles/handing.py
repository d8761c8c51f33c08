"""What the tests of handoffs share: agents that hand over, and what a model was given."""

from offbook.actors import ChatModelAgent
from offbook.runtime import ScriptedModel, ToolCall, ToolCalls


def chat(name, *script, **options):
    return ChatModelAgent(
        name=name,
        description=options.pop("description", f"about {name}"),
        model=ScriptedModel(script),
        **options,
    )


def ruled(name, rule, **options):
    """One whose model answers by a rule: a function of the request.

    It does not count how often it was asked, so that it can go on in another process.
    """
    return ChatModelAgent(
        name=name, description=f"about {name}", model=ScriptedModel([rule] * 50), **options
    )


def go(*names, text="", **arguments):
    """What a model says in order to hand over: to one, with arguments, or to several at once."""
    return ToolCalls(*((f"transfer_to_{name.lower()}", arguments) for name in names), text=text)


def raw(name, arguments, call_id="c1"):
    """The same with arguments as they are, however broken."""
    return ToolCalls(ToolCall(call_id, f"transfer_to_{name.lower()}", arguments))


def given(agent, call=-1):
    """What the model of an agent was given in one of its calls, without the instruction."""
    return [message for message in agent.model.requests[call].messages if message.role != "system"]


def shown(agent, call=-1):
    """The names of the tools that the model of an agent was shown in one of its calls."""
    return [tool.name for tool in agent.model.requests[call].tools]


def over(name):
    """The result of a handoff."""
    return f'{{"assistant": "{name}"}}'
