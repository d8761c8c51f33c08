"""Correct use: a type checker has nothing to say about any line of it.

It is checked, and never run.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, assert_type

from offbook.actors import (
    Agent,
    AgentContext,
    AgentInput,
    ChatModelAgent,
    GuardrailFunctionOutput,
    HandoffInputData,
    Loop,
    Middleware,
    Parallel,
    PlanExecute,
    Sequential,
    Supervisor,
    Tool,
    ToolContext,
    compose,
    handoff,
    input_guardrail,
    keep_last,
    make_executor,
    make_planner,
    make_replanner,
    set_sub_agents,
    summarize,
    tool,
)
from offbook.runtime import (
    Actor,
    ActorRef,
    ActorSystem,
    AgentEvent,
    AgentHooks,
    Backoff,
    Directive,
    EmbeddingModel,
    MailboxSettings,
    MapResult,
    MemoryStore,
    Message,
    ModelOptions,
    ModelRequest,
    ModelSettings,
    Options,
    Outcome,
    Restart,
    Resume,
    Run,
    RunContext,
    RunHooks,
    Runner,
    RunResult,
    ScriptedModel,
    SessionValues,
    SQLiteStore,
    ThreadActor,
    ToolOptions,
    add_global_hooks,
    model_from_env,
    register_type,
)


@register_type
@dataclass(frozen=True)
class Order:
    number: int


# --- tools ---


@tool
def weather(city: str, days: int = 1) -> str:
    """What it will be like."""
    return f"{city}, {days}: sunny"


@tool(name="ask", timeout=3.0, retries=2, needs_approval=True)
async def ask(context: ToolContext, question: str) -> dict[str, int]:
    context.session["asked"] = question
    answer = context.interrupt({"question": question}, state={"n": 1})
    return {"answer": len(answer)}


def search(text: str) -> list[str]:
    return [text]


def needs_a_look(context: ToolContext, arguments: dict[str, object]) -> bool:
    return context.agent_name == "a" and "x" in arguments


@tool(needs_approval=needs_a_look)
def delete(path: str) -> None:
    del path


assert_type(weather("Paris"), str)
by_hand = Tool(
    name="by_hand",
    parameters={"type": "object", "properties": {}},
    call=lambda _context, arguments: arguments["x"],
)


# --- agents ---


class Greeter(Agent):
    async def run(self, input: AgentInput, context: AgentContext) -> AsyncIterator[AgentEvent]:
        count = context.state.get("count", 0)
        context.state["count"] = count + 1
        outcome = await context.cast(ChatModelAgent(name="child"), input)
        assert_type(outcome, Outcome)
        assert_type(await context.step("once", self.number), int)
        if context.options.get("loud"):
            yield context.interrupt({"why": "loud"}, state=[count])
        yield AgentEvent.say("hello")
        yield AgentEvent.of(message=Message.assistant("there"), custom_output=Order(1))

    async def number(self) -> int:
        return 1


class Looking(RunHooks):
    def on_run_start(self, context: RunContext, input: AgentInput) -> None: ...
    async def on_run_end(self, context: RunContext, result: RunResult) -> None: ...
    def on_tool_start(
        self, context: RunContext, agent: Agent, tool: Tool, call: object
    ) -> None: ...


class Listening(AgentHooks):
    async def on_model_end(
        self, context: RunContext, agent: ChatModelAgent, message: Message
    ) -> None: ...


class Wrapping(Middleware):
    async def before_model(self, context: AgentContext, request: ModelRequest) -> ModelRequest:
        return request

    async def wrap_model(
        self,
        context: AgentContext,
        request: ModelRequest,
        call: Callable[[ModelRequest], Awaitable[Message]],
    ) -> Message:
        return await call(request)


@input_guardrail
async def polite(
    context: RunContext, agent: Agent, given: Sequence[Message]
) -> GuardrailFunctionOutput:
    return GuardrailFunctionOutput(output_info={"n": len(given)}, tripwire_triggered=False)


def shorter(data: HandoffInputData) -> HandoffInputData:
    return data.clone(new_items=data.new_items[-1:])


model = ScriptedModel([Message.assistant("yes")])
expert = ChatModelAgent(
    name="expert",
    description="knows",
    instruction=lambda context: context.agent_name,
    model=model,
    tools=[weather, search, by_hand],
)
desk = ChatModelAgent(
    name="desk",
    model=model,
    tools=[ask, delete],
    handoffs=[expert, handoff(expert, input_filter=shorter)],
    hooks=Listening(),
    middleware=[Wrapping()],
    input_guardrails=[polite],
    output_type=Order,
    model_settings=ModelSettings(temperature=0.5),
    on_failure=Restart(max_restarts=1, backoff=Backoff()),
)
team = Sequential(
    name="team",
    sub_agents=[
        Greeter(name="greeter"),
        Parallel(name="both", sub_agents=[expert], max_concurrency=2),
    ],
    history="lane",
)
assert_type(set_sub_agents(desk, [expert]), ChatModelAgent[Order])
again = Loop(name="again", sub_agents=[desk], max_iterations=3)
led = Supervisor(supervisor=desk, sub_agents=[expert], on_error="report")
planned = PlanExecute(
    planner=make_planner(model),
    executor=make_executor(model, [search], handoffs=[expert]),
    replanner=make_replanner(model),
)


# --- running ---


async def run_them() -> None:
    async with ActorSystem("service", worker_threads=4) as system:
        runner = Runner(
            team,
            system=system,
            store=SQLiteStore("runs.db"),
            durability="step",
            hooks=Looking(),
            streaming=True,
        )
        run = runner.query(
            "hello",
            checkpoint_id="c",
            session_values={"a": 1},
            options=ToolOptions(loud=True),
            timeout=3,
        )
        assert_type(run, Run)
        async for event in run:
            assert_type(event, AgentEvent)
        result = await run
        assert_type(result, RunResult)
        value: str = result.final_output
        runner.run(
            [Message.user(value)],
            options=[
                Options(agents=("a",), x=1),
                ModelOptions(temperature=0.1, stop=("x",)),
                {"y": 2},
            ],
            context=object(),
        )
        session = runner.session("user", busy="preempt")
        said = (await session.query("and now?", timeout=2)).final_message
        assert_type(said, Message | None)
        assert_type(await session.history(), tuple[Message, ...])
        runner.resume("c", {"interrupt": {"yes": True}}).cancel("after_tools", timeout=1)
        assert_type(await runner.recover(), list[Run])
    reply = await desk.generate("hello", session_values={"a": 1}, max_transfers=3)
    assert_type(reply, Message)
    Runner(planned, store=MemoryStore()).query("x").result(timeout=3).raise_for_error()


# --- the type of an answer ---


async def typed(model: ScriptedModel, documents: list[int]) -> None:
    labels = ChatModelAgent(name="labels", model=model, output_type=Order)
    assert_type(labels, ChatModelAgent[Order])
    assert_type(
        ChatModelAgent(name="several", model=model, output_type=list[Order]),
        ChatModelAgent[list[Order]],
    )
    assert_type(ChatModelAgent(name="texts", model=model), ChatModelAgent[str])
    assert_type(
        ChatModelAgent(name="one of", model=model, output_type=Literal["a", "b"]),
        ChatModelAgent[Any],
    )
    assert_type(labels.with_options(history="lane"), ChatModelAgent[Order])
    runner = Runner(labels, store=MemoryStore())
    assert_type(runner, Runner[Order])
    run = runner.query("x")
    assert_type(run, Run[Order])
    assert_type(await run, RunResult[Order])
    assert_type((await run).final_output, Order)
    assert_type(run.result().final_output, Order)
    assert_type(runner.run("x").result().final_output, Order)
    assert_type(runner.attach("x").result().final_output, Order)
    assert_type(runner.resume("x").result().final_output, Order)
    assert_type(runner.approve("x").result().final_output, Order)
    assert_type((await runner.recover())[0].result().final_output, Order)
    assert_type((await runner.session("s").query("x")).final_output, Order)
    async for mapped in runner.map(documents, ask=str, key=str, retry_failed=True):
        assert_type(mapped, MapResult[int, Order])
        assert_type(mapped.final_output, Order)
        assert_type(mapped.error, Exception | None)
    assert_type(Runner(ChatModelAgent(name="t", model=model)).query("x").result().final_output, str)
    assert_type(
        Runner(Sequential(name="s", sub_agents=[labels])).query("x").result().final_output, Any
    )
    anything: list[ChatModelAgent] = [labels, ChatModelAgent(name="t", model=model)]
    run_all: Callable[[Runner], Run] = lambda runner: runner.query("x")  # noqa: E731 -- it is to be checked
    print(anything, run_all(runner))


def values(session: SessionValues) -> int:
    session.set("a", 1)
    number: int = session["a"]
    more: int = session.get("b", 2)
    return number + more


# --- actors ---


class Counter(Actor):
    def __init__(self, start: int, step: int = 1) -> None:
        super().__init__()
        self.count, self.step = start, step

    async def on_receive(self, message: int) -> int:
        self.count += message * self.step
        return self.count

    def on_child_failure(self, ref: ActorRef[Actor], error: BaseException) -> Directive:
        return Resume()


class Parent(ThreadActor):
    def on_start(self) -> None:
        child = self.spawn(Counter, 1, step=2)
        assert_type(child, ActorRef[Counter])
        self.watch(
            self.spawn(
                Counter,
                1,
                name="named",
                supervision=Restart(),
                mailbox=MailboxSettings(capacity=2, overflow="block"),
            )
        )


async def spawn_them(system: ActorSystem) -> int:
    ref = system.spawn(Counter, 1, step=2)
    assert_type(ref, ActorRef[Counter])
    system.spawn(Parent, name="parent")
    ref.tell(1)
    await ref.send(2)
    future = ref.ask(3, block=False)
    total: int = await ref.request(4, timeout=1) + await future
    ref.stop(block=False, drain=True)
    return total


# --- what is fixed for an agent, for a Runner, for the process ---


class Knowing(Agent):
    known: Sequence[str] = ()

    def on_set_sub_agents(self, sub_agents: Sequence[Agent]) -> None:
        self.known = [agent.name for agent in sub_agents]

    def on_set_as_sub_agent(self, parent: Agent) -> None:
        print(parent.name)

    def on_disallow_transfer_to_parent(self) -> None:
        print(self.name)


def newest(context: AgentContext, messages: Sequence[Message]) -> Sequence[Message]:
    return messages[-1:] if context.agent_name else messages


async def fixed(session_id: str) -> Message:
    model = ScriptedModel(["x"])
    assert_type(model_from_env(kind="embedding"), EmbeddingModel)
    points: list[list[float]] = await model_from_env("embedding").embed(["a", "b"])
    print(points)
    short = handoff(
        Knowing(name="k"), input_filter=compose(keep_last(2), summarize(model, "Sum up.", keep=2))
    )
    agent = ChatModelAgent(name="a", model=model, message_modifier=newest, handoffs=[short])
    copy = agent.with_options(
        options=[ModelOptions(temperature=0)],
        history="isolated",
        hooks=AgentHooks(),
        disallow_transfer_to_parent=True,
    )
    assert_type(copy, ChatModelAgent[str])
    remove: Callable[[], None] = add_global_hooks(RunHooks())
    runner = Runner(copy, store=MemoryStore(), history="run_path")
    await runner.session(session_id, policy=keep_last(2)).query("q", run_id="r", detached=True)
    remove()
    return await agent.generate(
        "q", store=MemoryStore(), durability="step", run_id="r2", keep="all", history="lane"
    )
