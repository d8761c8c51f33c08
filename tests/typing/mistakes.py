"""A user's mistakes: each line that ends with the mark is an error for both type checkers, and no
other line is. It is checked, and never run.
"""

from collections.abc import AsyncIterator

from offbook.actors import (
    Agent,
    AgentContext,
    AgentInput,
    ChatModelAgent,
    Loop,
    Middleware,
    Parallel,
    Sequential,
    Supervisor,
    Tool,
    ToolContext,
    handoff,
    input_guardrail,
    make_executor,
    set_sub_agents,
    tool,
)
from offbook.runtime import (
    Actor,
    ActorSystem,
    AgentEvent,
    AgentHooks,
    MailboxSettings,
    MemoryStore,
    Message,
    ModelError,
    ModelOptions,
    ModelRequest,
    ModelSettings,
    OpenAIChatModel,
    Restart,
    RunContext,
    RunHooks,
    Runner,
    RunResult,
    ScriptedModel,
    UsageError,
)

# --- tools ---


@tool
def weather(city: str) -> str:
    return city


@tool(timeouts=3)  # error
def misspelt(city: str) -> str:
    return city


@tool(timeout="3")  # error
def wrong_option(city: str) -> str:
    return city


def says_how_long(context: ToolContext, arguments: dict[str, object]) -> str:
    return "3"


@tool(needs_approval=says_how_long)  # error
def wrong_approval(city: str) -> str:
    return city


@tool
def wrong_result(city: str) -> int:
    return city  # error


def uses_tools(context: ToolContext) -> None:
    weather(3)  # error
    weather(town="Paris")  # error
    number: int = weather("Paris")  # error
    print(weather.descriptions)  # error
    print(context.sesion)  # error
    context.send_action("exit")  # error
    context.emit("hello")  # error
    Tool(name="t", call=lambda _context, _arguments: 1, retrys=2)  # error
    Tool(name="t", call="f")  # error
    del number


# --- agents ---


class Talker(Agent):
    async def run(self, input: AgentInput, context: AgentContext) -> AsyncIterator[str]:  # error
        yield "hello"


class Shouter(Agent):
    async def run(self, input: AgentInput, context: AgentContext) -> AsyncIterator[AgentEvent]:
        yield "HELLO"  # error
        yield AgentEvent.say(3)  # error
        await context.cast("other")  # error
        await context.cast(Talker(name="t"), "hello")  # error
        context.stat["a"] = 1  # error


class Looking(RunHooks):
    def on_run_end(self, context: RunContext, result: RunResult) -> bool:  # error
        return True

    def on_run_start(self, context: RunContext, input: str) -> None:  # error
        del input


class Listening(AgentHooks):
    def on_model_end(self, context: RunContext, agent: Agent, message: str) -> None:  # error
        del message


class Wrapping(Middleware):
    async def before_model(self, context: AgentContext, request: ModelRequest) -> str:  # error
        return "x"


@input_guardrail  # error
def not_polite(context: RunContext, agent: Agent, given: str) -> bool:
    return True


expert = ChatModelAgent(name="expert", model=ScriptedModel([]))
ChatModelAgent(model="gpt-4o")  # error
ChatModelAgent(name="a", modle="gpt-4o")  # error
ChatModelAgent(name="a", model=3)  # error
ChatModelAgent(name="a", tools=["weather"])  # error
ChatModelAgent(name="a", on_tool_error="ignore")  # error
ChatModelAgent(name="a", hooks=Looking())  # error
ChatModelAgent(name="a", histroy="lane")  # error
ChatModelAgent(name="a", history="all")  # error
ChatModelAgent(name="a", on_failure="restart")  # error
ChatModelAgent(name="a", model_settings={"temperature": 1})  # error
Sequential(name="s", sub_agent=[expert])  # error
Sequential(name="s", sub_agents=[expert], max_iterations=3)  # error
Sequential(name="s", sub_agents=["expert"])  # error
Loop(name="l", sub_agents=[expert], max_iterations="3")  # error
Parallel(name="p", sub_agents=[expert], max_concurency=2)  # error
Parallel(name="p", sub_agents=[expert], on_error="abort")  # error
Supervisor(supervisor=expert, sub_agents=[expert], on_error="cancel")  # error
set_sub_agents(expert, expert)  # error
handoff(expert, tool_nam="x")  # error
make_executor("gpt-4o", [weather], handofs=[expert])  # error
ModelSettings(temprature=0.5)  # error
ModelOptions(temprature=0.5)  # error
OpenAIChatModel("gpt-4o", temprature=0.5)  # error
Message.assistant(3)  # error
UsageError("wrong", agnet="a")  # error
ModelError("lost", retriable=True)  # error


# --- running ---


class NoStore:
    def get(self, key: str) -> int:
        return len(key)


Runner("agent")  # error
Runner(expert, store="runs.db")  # error
Runner(expert, store=NoStore())  # error
Runner(expert, durability="always")  # error
Runner(expert, durabilty="step")  # error
Runner(expert, hooks=Listening())  # error
Runner(expert, system="service")  # error
runner = Runner(expert, store=MemoryStore())


async def run_them() -> None:
    runner.run("hello", checkpoint="c")  # error
    runner.run(3)  # error
    runner.run("hello", timeout="3")  # error
    runner.run("hello", options=3)  # error
    runner.query("hello", sesion_id="s")  # error
    runner.query(["hello"])  # error
    runner.query("hello", session_values=["a"])  # error
    runner.resume("c", answers={})  # error
    runner.resume(None)  # error
    runner.session("s", busy="wait")  # error
    runner.session(3)  # error
    session = runner.session("s")
    session.query("hello", time_out=3)  # error
    session.query("hello", session_id="t")  # error
    session.run("hello", streamin=True)  # error
    runner.query("hello").cancel("later")  # error
    print((await runner.query("hello")).final_mesage)  # error
    await expert.generate("hello", checkpoint="c")  # error
    text: str = await expert.generate("hello")  # error
    del text


class Label:
    text: str


def typed_answers() -> None:
    labels = ChatModelAgent(name="labels", model=ScriptedModel([]), output_type=Label)
    answer = Runner(labels).query("x").result().final_output
    print(answer.text, answer.txt)  # error
    text: str = answer  # error
    number: int = Runner(expert).query("x").result().final_output  # error
    print(text, number)


# --- actors ---


class Counter(Actor):
    def __init__(self, start: int) -> None:
        super().__init__()
        self.count = start

    def on_start(self) -> None:
        self.spawn(Counter, "1")  # error
        self.spawn(Counter)  # error
        self.spawn(Counter, 1, supervision="restart")  # error
        self.watch("counter")  # error

    def on_child_failure(self, ref: object, error: BaseException) -> str:  # error
        return "restart"


def spawn_them(system: ActorSystem) -> None:
    system.spawn(Counter, "1")  # error
    system.spawn(Counter)  # error
    system.spawn(Counter, 1, begin=2)  # error
    system.spawn(str)  # error
    system.spawn(Counter, 1, name=3)  # error
    system.spawn(Counter, 1, mailbox=3)  # error
    system.spawn(Counter, 1, supervision=MailboxSettings())  # error
    MailboxSettings(overflow="drop")  # error
    Restart(max_retries=3)  # error
    ActorSystem(worker_thread=3)  # error
    ref = system.spawn(Counter, 1)
    ref.ask(1, blok=False)  # error
    ref.tell()  # error
    ref.stop(timout=3)  # error
