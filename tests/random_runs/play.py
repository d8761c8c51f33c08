"""How random trees of agents are built: either so that what waits for something from outside
interrupts, or so that it takes its answer at once.

Models are functions of the request, so a run that goes on in another process asks and is told the
same. What is asked, called and given is written down.
"""

import asyncio
import json
from collections import Counter

from offbook.actors import (
    Agent,
    Approve,
    ChatModelAgent,
    Deny,
    DeterministicTransfer,
    Loop,
    Parallel,
    PlanExecute,
    Sequential,
    Supervisor,
    ToolContext,
    make_executor,
    make_planner,
    make_replanner,
    tool,
)
from offbook.actors.tools.tool_context import call_state_of
from offbook.runtime import (
    AgentEvent,
    Backoff,
    BreakLoop,
    CustomAction,
    Exit,
    Message,
    MessageDelta,
    Restart,
    ToolCall,
    ToolError,
    TransferToAgent,
    Usage,
)
from tests.random_runs.trees import Back, Chat, Custom, Flow, Planned, Team


def answer(info):
    """What is answered to what: to a question, or to whether a call may be made."""
    if isinstance(info, str):
        return f"<{info}>"
    arguments = json.loads(info.arguments)
    if arguments["amount"] == 0:
        return Deny("no")
    return True if arguments["amount"] == 1 else Approve(arguments={**arguments, "amount": 100})


class World:
    """What one building of a tree has seen: what was asked and called, and what of it was cut
    short.
    """

    def __init__(self, *, inline=False, streaming=False):
        self.inline = inline
        self.streaming = streaming
        self.inputs = []  # what agents were given
        self.asked = []  # what models were asked
        self.called = []  # the calls that were made of tools and steps, with their idempotency keys
        self.places = {}  # by the key of a call: its invocation and its id
        self.cut = Counter()  # of each kind, how many were under way when they were ended
        self.dead = False  # whether the process is no more: nothing that happens now has happened
        # Whether the run has been cut short: what ends now is not recorded any more.
        self.is_over = lambda: False

    def die(self):
        self.dead = True

    async def take(self, kind, log, entry, turns):
        """Something that takes time, and that must be done once.

        Returns whether it has come too late: the run was cut short meanwhile.
        """
        if self.dead:
            await asyncio.get_running_loop().create_future()
        log.append(entry)
        try:
            for _ in range(turns):
                await asyncio.sleep(0)
            late = self.is_over()
            self.cut[kind] += late
            return late
        except asyncio.CancelledError:
            self.cut[kind] += not self.dead
            raise


def plain(message):
    """A message without the ids in it."""
    return (
        message.role,
        message.text,
        tuple((call.name, call.arguments) for call in message.tool_calls),
        message.tool_name,
    )


class Model:
    """Answers by what it is asked: how often it has answered before says which line of the script
    is next.
    """

    def __init__(self, name, world, lines):
        self.name = name
        self.world = world
        self.lines = lines

    def _calls(self, line, own):
        for place, (name, arguments) in enumerate(line):
            call_id = (f"c{own}.{place}", "", "same")[(own + place) % 3]
            yield ToolCall(
                call_id,
                name,
                json.dumps(
                    {
                        **arguments,
                        **({"label": f"{self.name}:{own}.{place}"} if name in LABELLED else {}),
                    }
                ),
            )

    async def generate(self, request):
        return (await self._reply(request))[0]

    async def stream(self, request):
        message, late = await self._reply(request)
        cut = True
        try:
            for word in message.text.split(" "):
                yield MessageDelta(word)
            yield message
            cut = self.world.is_over()
        finally:
            self.world.cut["model"] += cut and not late and not self.world.dead

    async def _reply(self, request):
        messages = request.messages
        own = sum(message.role == "assistant" for message in messages)
        asked = (self.name, [plain(message) for message in messages])
        late = await self.world.take("model", self.world.asked, asked, (own + len(self.name)) % 4)
        line = self.lines(messages, own)
        usage = Usage(input_tokens=len(messages), output_tokens=1, requests=1)
        if isinstance(line, str):
            return Message(
                "assistant", f"{self.name} says {line} after {len(messages)}", usage=usage
            ), late
        return Message("assistant", "", tuple(self._calls(line, own)), usage=usage), late


LABELLED = ("ask", "pay", "echo", "fail", "direct")


def tools_of(world):
    """The tools that every agent with a model has."""

    def took(context, label, turns=1):
        world.places[context.idempotency_key] = (
            call_state_of(context).runtime.invocation.id,
            context.call_id,
        )
        return world.take(
            "tool", world.called, (context.tool_name, label, context.idempotency_key), turns
        )

    @tool
    async def ask(context: ToolContext, times: int, label: str) -> str:
        world.called.append(("ask", label, context.idempotency_key))
        assert context.interrupt_state is None or context.is_resume_target
        return ",".join(
            answer(f"{label}?{turn}")
            if world.inline
            else context.interrupt(f"{label}?{turn}", state=turn)
            for turn in range(times)
        )

    @tool
    async def echo(context: ToolContext, turns: int, label: str) -> str:
        await took(context, label, turns)
        return f"echo of {label}"

    @tool
    async def fail(context: ToolContext, label: str) -> str:
        await took(context, label)
        raise ValueError(f"failed at {label}")

    @tool(return_directly=True)
    async def direct(context: ToolContext, label: str) -> str:
        await took(context, label)
        return f"direct of {label}"

    @tool(needs_approval=not world.inline)
    async def pay(context: ToolContext, amount: int, label: str) -> str:
        if world.inline and amount == 0:
            raise ToolError("the call of pay was denied: no")
        await took(context, label)
        return f"paid {100 if amount == 2 else amount} for {label}"

    @tool(name="break")
    async def break_(context: ToolContext) -> str:
        context.send_action(BreakLoop())
        return "broken"

    @tool
    async def say(context: ToolContext) -> str:
        context.send_action(CustomAction("said"))
        return "said"

    return [ask, echo, fail, direct, pay, break_, say]


class Player(Agent):
    """Takes its steps, one by one. How far it is, is its state."""

    def __init__(self, spec, world, children):
        on_failure = (
            Restart(max_restarts=100, backoff=Backoff(initial=0, maximum=0))
            if spec.restarts
            else None
        )
        super().__init__(
            name=spec.name,
            description=f"plays {spec.name}",
            sub_agents=() if spec.stranger else children,
            on_failure=on_failure,
        )
        self.plan = spec.plan
        self.world = world
        self.children = children

    async def run(self, input, context):
        state, session, world = context.state, context.session, self.world
        world.inputs.append((self.name, [plain(message) for message in input.messages]))
        while (place := state.get("next", 0)) < len(self.plan):
            kind, number = self.plan[place]
            child = self.children[number % len(self.children)] if self.children else None
            if kind == "ask" and not self._is_answered(context, place):
                yield context.interrupt(f"{self.name}?{place}", state={"place": place})
                return
            if kind == "cast" and child is not None:
                outcome = await context.cast(child)
                if outcome.kind != "finished" or outcome.broke:
                    return
            event = None
            if kind == "step":
                made = await context.step(
                    f"step {place}", lambda place=place: self._make(context, place)
                )
                event = AgentEvent.say(made)
            state["next"] = place + 1  # with the event, if there is one: they are recorded together
            if kind == "say":
                event = AgentEvent.say(f"{self.name} says {place} after {len(input.messages)}")
            elif kind == "ask":
                event = AgentEvent.say(
                    f"{self.name} heard "
                    f"{answer(f'{self.name}?{place}') if world.inline else context.resume.data}"
                )
            elif kind == "set":
                session[self.name] = place
            elif kind == "wait":
                for _ in range(number):
                    await asyncio.sleep(0)
            elif kind == "transfer" and child is not None:
                event = AgentEvent.of(action=TransferToAgent(child.name))
            elif kind in ("exit", "break"):
                event = AgentEvent.of(action=Exit() if kind == "exit" else BreakLoop())
            elif (
                kind == "stumble"
                and self.on_failure is not None
                and not session.get(f"{self.name} stumbled at {place}")
            ):
                session[f"{self.name} stumbled at {place}"] = True
                raise ValueError(f"{self.name} stumbled")
            elif kind == "error":
                raise ValueError(f"{self.name} broke")
            if event is not None:
                yield event
            if event is not None and isinstance(event.action, TransferToAgent):
                return  # when it is started again, all that is left is to hand over

    def _is_answered(self, context, place):
        resume = context.resume
        return self.world.inline or (
            resume is not None and resume.is_target and resume.state == {"place": place}
        )

    async def _make(self, context, place):
        await self.world.take(
            "step", self.world.called, ("step", f"{self.name}:{place}", context.invocation_id), 2
        )
        return f"{self.name} made {place}"


def build(tree, world):
    """The agent of a tree."""
    return _BUILDERS[type(tree)](tree, world)


def _build_chat(tree, world):
    names = [sub.name for sub in tree.subs]
    agents = [build(agent, world) for agent in tree.tools]

    def call(name, number):
        if name == "transfer" and names:
            return "transfer_to_agent", {"agent_name": names[number % len(names)]}
        if name == "up":
            return "transfer_to_agent", {"agent_name": tree.up}
        if name == "tool" and agents:
            return agents[number % len(agents)].name, {"request": f"asked by {tree.name}"}
        if name in ("ask", "pay", "echo"):
            return name, {{"ask": "times", "pay": "amount", "echo": "turns"}[name]: number}
        return name, ({"final_result": "the end"} if name == "exit" else {})

    script = [[call(*one) for one in turn] for turn in tree.script]
    return ChatModelAgent(
        name=tree.name,
        description=f"plays {tree.name}",
        model=Model(
            tree.name, world, lambda _messages, own: (*script, "something")[own % (len(script) + 1)]
        ),
        tools=[
            *tools_of(world),
            *(
                agent.as_tool(emit_events=bool(index % 2), full_history=tree.one_by_one)
                for index, agent in enumerate(agents)
            ),
        ],
        sub_agents=[build(sub, world) for sub in tree.subs],
        parallel_tool_calls=not tree.one_by_one,
        on_tool_error="raise" if tree.raises else "report",
        history=tree.history,
        exit_tool=True,
        output_key=f"of {tree.name}",
        max_iterations=6,
    )


def _build_custom(tree, world):
    return Player(tree, world, [build(sub, world) for sub in tree.subs])


def _build_flow(tree, world):
    subs = [build(sub, world) for sub in tree.subs]
    if tree.kind == "seq":
        return Sequential(name=tree.name, sub_agents=subs)
    if tree.kind == "loop":
        return Loop(name=tree.name, sub_agents=subs, max_iterations=tree.times)
    return Parallel(name=tree.name, sub_agents=subs, max_concurrency=tree.most)


def _build_team(tree, world):
    names = [sub.name for sub in tree.subs]
    script = [
        [("transfer_to_agent", {"agent_name": names[number % len(names)]})]
        for ((_, number),) in tree.chief.script
    ]
    lines = lambda _messages, own: (*script, "all done")[min(own, len(script))]  # noqa: E731
    chief = ChatModelAgent(
        name=tree.name, description="leads", model=Model(tree.name, world, lines)
    )
    return Supervisor(
        supervisor=chief,
        sub_agents=[build(sub, world) for sub in tree.subs],
        on_error="report" if tree.report else "abort",
    )


def _build_planned(tree, world):
    def replanned(messages, _own):
        done = messages[-1].text.count("Step: ")
        left = [f"step {number}" for number in range(done, tree.steps)]
        return [("plan", {"steps": left})] if left else [("respond", {"response": "the answer"})]

    executor = _build_chat(tree.executor, world)
    played = make_executor(
        executor.model, executor.tools[:-1], name=tree.executor.name, max_iterations=6
    )
    plan = [("plan", {"steps": [f"step {number}" for number in range(tree.steps)]})]
    return PlanExecute(
        planner=make_planner(
            Model(f"{tree.name}p", world, lambda _messages, _own: plan), name=f"{tree.name}p"
        ),
        executor=played,
        replanner=make_replanner(Model(f"{tree.name}r", world, replanned), name=f"{tree.name}r"),
        name=tree.name,
    )


_BUILDERS = {
    Chat: _build_chat,
    Custom: _build_custom,
    Flow: _build_flow,
    Team: _build_team,
    Back: lambda tree, world: DeterministicTransfer(build(tree.inner, world), to=[tree.up]),
    Planned: _build_planned,
}
