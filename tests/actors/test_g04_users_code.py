"""G4, for code of users that runs alongside a model: guardrails, predicates, hooks, models, tools.

Whatever it raises is its run's failure and ends no loop.
"""

import ast
import asyncio
from pathlib import Path

import pytest

from offbook.actors import (
    ChatModelAgent,
    GuardrailFunctionOutput,
    InputGuardrail,
    OutputGuardrail,
    handoff,
    tool,
)
from offbook.runtime import AgentHooks, RunHooks, Runner, ScriptedModel, ToolCalls

ROOT = Path(__file__).parents[2]
CRASHES = [SystemExit, KeyboardInterrupt]


class Boom:
    """Raises once the loop has turned, or at once."""

    def __init__(self, error, later):
        self.error, self.later = error, later

    async def __call__(self, *args, **kwargs):
        if self.later:
            await asyncio.sleep(0)
        raise self.error


async def passes(context, agent, value):
    await asyncio.sleep(0)
    return GuardrailFunctionOutput()


class BoomModel(ScriptedModel):
    def __init__(self, boom):
        super().__init__(["hello"])
        self.boom = boom

    async def generate(self, request):
        await self.boom()

    async def stream(self, request):
        await self.boom()
        yield


def model():
    return ScriptedModel(["hello"])


def hooked(kind, name, boom):
    """Hooks of that kind, one of which explodes."""
    return type("Hooks", (kind,), {name: lambda self, *args: boom(), "__module__": __name__})


def parallel_input(boom):
    return ChatModelAgent(name="a", model=model(), input_guardrails=[InputGuardrail(boom)]), {}


def two_inputs(boom):
    return ChatModelAgent(
        name="a", model=model(), input_guardrails=[InputGuardrail(boom), InputGuardrail(passes)]
    ), {}


def input_before(boom):
    return ChatModelAgent(
        name="a", model=model(), input_guardrails=[InputGuardrail(boom, run_in_parallel=False)]
    ), {}


def one_output(boom):
    return ChatModelAgent(name="a", model=model(), output_guardrails=[OutputGuardrail(boom)]), {}


def two_outputs(boom):
    return ChatModelAgent(
        name="a", model=model(), output_guardrails=[OutputGuardrail(passes), OutputGuardrail(boom)]
    ), {}


def model_beside_guardrail(boom):
    return ChatModelAgent(
        name="a", model=BoomModel(boom), input_guardrails=[InputGuardrail(passes)]
    ), {}


def model_alone(boom):
    return ChatModelAgent(name="a", model=BoomModel(boom)), {}


def one_switch(boom):
    return ChatModelAgent(
        name="a",
        model=model(),
        handoffs=[handoff(ChatModelAgent(name="b", model=model()), is_enabled=boom)],
    ), {}


def two_switches(boom):
    others = [ChatModelAgent(name=name, model=model()) for name in "bc"]
    return ChatModelAgent(
        name="a", model=model(), handoffs=[handoff(other, is_enabled=boom) for other in others]
    ), {}


def instruction(boom):
    return ChatModelAgent(name="a", model=model(), instruction=boom), {}


def two_tools(boom):
    @tool
    async def explode() -> str:
        """Explode."""
        return await boom()

    return ChatModelAgent(
        name="a",
        model=ScriptedModel([ToolCalls(("explode", {}), ("explode", {}))]),
        tools=[explode],
    ), {}


def hook_of_run(name):
    def make(boom):
        return ChatModelAgent(name="a", model=model()), {"hooks": hooked(RunHooks, name, boom)()}

    make.__name__ = f"run_{name}"
    return make


def hook_of_agent(name):
    def make(boom):
        return ChatModelAgent(name="a", model=model(), hooks=hooked(AgentHooks, name, boom)()), {}

    make.__name__ = f"agent_{name}"
    return make


def handoff_hook(boom):
    other = ChatModelAgent(name="b", model=model())
    first = ChatModelAgent(
        name="a",
        model=ScriptedModel([ToolCalls(transfer_to_b={})]),
        handoffs=[other],
        hooks=hooked(AgentHooks, "on_handoff", boom)(),
    )
    return first, {"hooks": hooked(RunHooks, "on_handoff", passes)()}


PLACES = [
    parallel_input,
    two_inputs,
    input_before,
    one_output,
    two_outputs,
    model_beside_guardrail,
    model_alone,
    one_switch,
    two_switches,
    instruction,
    two_tools,
    handoff_hook,
    *map(
        hook_of_run,
        ("on_run_start", "on_agent_start", "on_model_start", "on_model_end", "on_agent_end"),
    ),
    *map(hook_of_agent, ("on_start", "on_end", "on_model_start")),
]


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize("later", [False, True])
@pytest.mark.parametrize("crash", CRASHES, ids=lambda crash: crash.__name__)
@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.__name__)
def test_g04_what_users_code_raises_is_its_runs_failure_and_ends_no_loop(
    run, place, crash, later, streaming
):
    async def main():
        agent, options = place(Boom(crash("enough"), later))
        other = Runner(ChatModelAgent(name="other", model=ScriptedModel(["fine"]))).query("go")
        result = await Runner(agent, streaming=streaming, **options).query("go")
        assert (await other).final_output == "fine"
        assert result.status == "failed"
        assert isinstance(result.error, Exception)
        assert crash.__name__ in str(result.error)

    run(asyncio.wait_for(main(), 10))


@pytest.mark.parametrize("later", [False, True])
@pytest.mark.parametrize("crash", CRASHES, ids=lambda crash: crash.__name__)
def test_g04_what_on_run_end_raises_is_logged_since_the_end_is_recorded_by_then(
    run, caplog, crash, later
):
    async def main():
        hooks = hooked(RunHooks, "on_run_end", Boom(crash("enough"), later))()
        result = await Runner(ChatModelAgent(name="a", model=model()), hooks=hooks).query("go")
        assert result.status == "completed"
        assert result.final_output == "hello"

    run(asyncio.wait_for(main(), 10))
    (record,) = [record for record in caplog.records if record.levelname == "ERROR"]
    assert "on_run_end" in record.getMessage()
    assert crash.__name__ in record.exc_text


# --- every task is started in one place ---

# Where a task is started without `start_task`, and why none of them runs code of users: by file,
# and how many there are.
OWN = "the package's own code, which awaits what is guarded elsewhere"
BARE = {
    "actors/chat_agent/loop.py": (1, "gathers what are tasks already"),
    "actors/mcp/mcp_tool.py": (1, "waits for an event"),
    "actors/realtime/core/record.py": (1, "gathers what is a task already"),
    "actors/realtime/local/conversation.py": (1, "gathers what is a task already"),
    "actors/realtime/session.py": (1, "waits for a future"),
    "actors/realtime/state/settings.py": (1, "gathers what is guarded"),
    "runtime/a2a/client/pump.py": (2, OWN),
    "runtime/a2a/push/outbox.py": (1, OWN),
    "runtime/actor/cell.py": (1, "Steps, which raises nothing"),
    "runtime/actor/thread_cell.py": (1, "Steps, which raises nothing"),
    "runtime/cluster/client/changes.py": (5, OWN),
    "runtime/cluster/client/cluster.py": (2, OWN),
    "runtime/cluster/client/watch.py": (1, OWN),
    "runtime/cluster/client/routes.py": (1, OWN),
    "runtime/cluster/client/run.py": (2, OWN),
    "runtime/cluster/host/host.py": (2, OWN),
    "runtime/cluster/host/takeover.py": (4, OWN),
    "runtime/cluster/on_ray/actor.py": (1, OWN),
    "runtime/console/begun_runs.py": (1, "consumes a run"),
    "runtime/console/event_feed.py": (1, "consumes a run"),
    "runtime/console/run_list.py": (2, "reads a store of the console's process"),
    "runtime/console/kept_steps.py": (1, "reads a store of the console's process"),
    "runtime/durability/leases.py": (3, OWN),
    "runtime/durability/store_owner.py": (1, OWN),
    "runtime/mcp/connection.py": (2, "the connection to an MCP server"),
    "runtime/models/wire/loop_clients.py": (1, "closes the connections of a model"),
    "runtime/observe/sse.py": (2, "consumes a run, and waits for its shutdown"),
    "runtime/run/kept/pruning.py": (3, OWN),
    "runtime/services.py": (1, "drains, and ends the process after SIGTERM"),
    "runtime/session.py": (1, OWN),
    "runtime/tasks.py": (1, "is the place"),
}

_STARTS = {"create_task", "ensure_future", "gather", "TaskGroup", "Task"}


def starts(path):
    """The lines of a file where asyncio starts a task.

    `gather(*tasks)` starts none: its only argument is a name.
    """
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if (
            not isinstance(node, ast.Call)
            or not isinstance(node.func, ast.Attribute)
            or node.func.attr not in _STARTS
        ):
            continue
        if node.func.attr == "gather" and all(
            isinstance(one, ast.Starred) and isinstance(one.value, ast.Name | ast.Attribute)
            for one in node.args
        ):
            continue
        owner = ast.unparse(node.func.value)
        if owner == "asyncio" or owner.endswith(("loop", "get_running_loop()")):
            found.append(node.lineno)
    return found


def test_every_task_is_started_by_start_task_or_is_listed_with_the_reason():
    """`start_task` guards the loop.

    A task that is started another way must run no code of users: list it here, with what it runs.
    """
    found = {}
    for room in ("actors", "runtime"):
        for path in (ROOT / room).rglob("*.py"):
            name = str(path.relative_to(ROOT))
            if lines := starts(path):
                found[name] = len(lines)
    assert found == {name: count for name, (count, _) in BARE.items()}
