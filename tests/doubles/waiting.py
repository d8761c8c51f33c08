"""What the tests of interrupts share: agents and tools that wait for something from outside, and
how an interrupt looks as lines.
"""

from typing import Any

from offbook.actors import Agent, ChatModelAgent
from offbook.runtime import AgentEvent, MemoryStore, Runner, ScriptedModel, ToolCalls


def to(name):
    """What a model says in order to hand over."""
    return ToolCalls(transfer_to_agent={"agent_name": name})


def chat(name, *script, **options):
    return ChatModelAgent(
        name=name, description=f"about {name}", model=ScriptedModel(script), **options
    )


class Asker(Agent):
    """Asks its questions, one each time that it plays, and says what it was told.

    What it has heard so far is its state.
    """

    def __init__(self, name: str, *questions: Any, **options: Any) -> None:
        super().__init__(name=name, description=f"asks as {name}", **options)
        self.questions = questions or (f"{name}?",)
        self.inputs: list[Any] = []
        self.resumes: list[Any] = []  # what it was told of each time that it played

    async def run(self, input, context):
        self.inputs.append(input)
        resume = context.resume
        self.resumes.append(resume)
        heard = [] if resume is None else list(resume.state)
        if resume is not None and resume.is_target:
            heard.append(resume.data)
        if len(heard) < len(self.questions):
            yield context.interrupt(self.questions[len(heard)], state=heard)
            return
        yield AgentEvent.say(f"{self.name} heard {','.join(map(str, heard))}")


class Naive(Agent):
    """Asks once, and does not care whether it was answered when it is called again."""

    async def run(self, input, context):
        if context.resume is None:
            yield context.interrupt(f"{self.name}?", state=f"state of {self.name}")
        else:
            yield AgentEvent.say(f"{self.name} heard {context.resume.data}")


class Stage:
    """A runner with a store, and the runs that it makes one after the other: `start()`, then
    `go_on(...)` from where the last one rests.
    """

    def __init__(self, agent: Any, **options: Any) -> None:
        self.store = options.pop("store", None) or MemoryStore()
        self.runner = Runner(agent, store=self.store, **options)
        self.id: str | None = None
        self.run_id: str | None = None

    def start(self, text="q", **options):
        run = self.runner.query(text, **options)
        result = run.result(20)
        self.id, self.run_id = run.checkpoint_id, run.id
        return result

    def go_on(self, targets=None, **options):
        run = self.runner.resume(options.pop("id", self.id), targets, **options)
        result = run.result(20)
        if run.id == self.run_id:
            self.id = run.checkpoint_id
        return result


def path(context):
    """An address, as a line without the ids of calls."""
    return "/".join(f"{step.kind}:{step.name}" for step in context.address)


def chain(context):
    """A context and its parents, as lines."""
    found = []
    while context is not None:
        found.append(f"{path(context)} {context.info!r}{' root' if context.is_root_cause else ''}")
        context = context.parent
    return found


def ids(result):
    """The id of each interrupt, by the name that its address ends with."""
    return {context.address[-1].name: context.id for context in result.interrupts}


def told(model, call=-1):
    """What a model was told by the tools before one of its calls: name and text, in its order."""
    return [
        (message.tool_name, message.text)
        for message in model.requests[call].messages
        if message.role == "tool"
    ]


def is_whole(messages):
    """Whether each call in a conversation has its one result right behind it, in the order of the
    calls, and no result is without its call.
    """
    waiting = []
    for message in messages:
        if message.role == "tool":
            if not waiting or waiting.pop(0) != message.tool_call_id:
                return False
        elif waiting:
            return False
        else:
            waiting = [call.id for call in message.tool_calls]
    return not waiting
