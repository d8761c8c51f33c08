"""G22 for tools of MCP servers: names, policies and questions, on a real server over stdio."""

import asyncio
import os
import sys
import types
from pathlib import Path

import pytest

from offbook.actors import ChatModelAgent, McpTools, tool
from offbook.actors.mcp.mcp_tool import McpTool
from offbook.runtime import MemoryStore, Runner, ScriptedModel, ToolCalls, UsageError

STDIO = [sys.executable, str(Path(__file__).parents[2] / "programs" / "mcp_server.py"), "stdio"]
PATIENCE = 30

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::ResourceWarning")]


def runner_of(tools, *script):
    return Runner(
        ChatModelAgent(name="A", model=ScriptedModel(script), tools=[tools]), store=MemoryStore()
    )


async def soon(run):
    return await asyncio.wait_for(run, PATIENCE)


def told(result):
    return [
        event.message.text.strip()
        for event in result.events
        if event.message is not None and event.message.role == "tool"
    ]


@pytest.mark.parametrize("name", ["file.delete", "file_delete"])
def test_g22_a_name_is_the_server_s_or_the_one_that_the_model_is_shown(run, name):
    async def main():
        async with McpTools(command=STDIO, needs_approval=[name]) as tools:
            result = await soon(runner_of(tools, ToolCalls(file_delete={"path": "/x"})).query("go"))
            assert [(one.info.tool_name, one.info.arguments) for one in result.interrupts] == [
                ("file_delete", '{"path":"/x"}')
            ]

    run(main())


def test_g22_a_name_that_no_tool_has_is_an_error(run):
    async def main():
        with pytest.raises(UsageError, match="has no tool 'delete_file'"):
            async with McpTools(command=STDIO, needs_approval=["delete_file"]):
                pass

    run(main())


@pytest.mark.parametrize("wrong", ["add", 7, None])
def test_g22_what_names_no_tools_is_an_error(wrong):
    with pytest.raises(UsageError, match="needs_approval must be"):
        McpTools(command=["x"], needs_approval=wrong)


def test_g22_a_tool_that_is_renamed_or_added_later_needs_approval(run):
    async def main():
        async with McpTools(command=STDIO, needs_approval=["file.delete"]) as tools:
            runner = runner_of(
                tools,
                ToolCalls(("rename", {}), ("grow", {})),
                "renamed",
                ToolCalls(("remove", {"path": "/x"}), ("grown", {}), ("add", {"a": 1})),
                "end",
            )
            assert (await soon(runner.query("go"))).text == "renamed"
            result = await soon(runner.query("go"))
            assert sorted(one.info.tool_name for one in result.interrupts) == ["grown", "remove"]
            assert told(result) == ["2"]

    run(main())


def test_g22_a_policy_is_given_the_values_with_which_the_server_is_called(run):
    judged = []

    async def main():
        async with McpTools(
            command=STDIO,
            tools=["file.delete", "add"],
            needs_approval=lambda context, values: bool(judged.append(values)),
        ) as tools:
            runner = runner_of(
                tools,
                ToolCalls(("file_delete", {"path": "/x", "force": "false"}), ("add", {"a": "42"})),
                "end",
            )
            assert sorted(told(await soon(runner.query("go")))) == ["43", "deleted /x False"]

    run(main())
    assert sorted(judged, key=len) == [
        {"path": "/x", "force": False},
        {"a": 42, "b": 1},
    ] or judged == [{"a": 42, "b": 1}, {"path": "/x", "force": False}]


def test_g22_a_policy_that_raises_asks(run):
    async def main():
        async with McpTools(
            command=STDIO, tools=["add"], needs_approval=lambda context, values: values["nothing"]
        ) as tools:
            result = await soon(runner_of(tools, ToolCalls(add={"a": 1})).query("go"))
            assert [one.info.tool_name for one in result.interrupts] == ["add"]

    run(main())


def test_g22_a_server_that_asks_something_else_is_not_given_the_old_answer(run, tmp_path):
    async def main():
        file = tmp_path / "recipients"
        file.write_text("10 to Bob")
        async with McpTools(command=STDIO, env={**os.environ, "RECIPIENTS": str(file)}) as tools:
            runner = runner_of(tools, ToolCalls(transfer={}), "end")
            (first,) = (await soon(runner.query("go", run_id="r"))).interrupts
            assert first.info["message"] == "Pay 10 to Bob?"
            file.write_text("9999 to Mallory")
            (second,) = (await soon(runner.resume("r", {first.id: {"size": "yes"}}))).interrupts
            assert second.info["message"] == "Pay 9999 to Mallory?"
            assert told(await soon(runner.resume("r", {second.id: None}))) == [
                "decline: paid 9999 to Mallory"
            ]

    run(main())


def test_a_client_of_a_served_agent_is_told_what_the_agent_says_and_nothing_of_its_inside(run):
    """Arguments, results and errors are the agent's own: any client may ask."""
    from offbook.runtime.mcp import serving

    class Told:
        def __init__(self):
            self.lines = []

        async def report_progress(self, *line):
            self.lines.append(line[2])

    @tool
    def lookup(key: str) -> str:
        """Look up."""
        return "row: password=hunter2"

    def fail(request):
        raise RuntimeError("postgres://bob:hunter4@db/x failed")

    async def main():
        told = Told()
        agent = ChatModelAgent(
            name="A",
            tools=[lookup],
            model=ScriptedModel([ToolCalls(lookup={"key": "internal-key"}), "All is well."]),
        )
        assert await serving._answer(Runner(agent).query("q"), told, RuntimeError) == "All is well."
        assert [line for line in told.lines if line] == ["All is well."]
        with pytest.raises(RuntimeError) as failed:
            await serving._answer(
                Runner(ChatModelAgent(name="B", model=ScriptedModel([fail]))).query("q"),
                told,
                RuntimeError,
            )
        assert "hunter" not in str(failed.value)
        assert "The log of the server has the reason" in str(failed.value)

    run(main())


def test_g22_an_approval_is_for_the_tool_that_the_server_meant(run, tmp_path):
    """Two names of a server may be shown alike: after a restart, the approved name may be that of
    another tool.
    """

    async def main():
        made = []

        def served(name):
            spec = types.SimpleNamespace(
                name=name,
                description="Pay.",
                title=None,
                input_schema={"type": "object", "properties": {"euros": {"type": "integer"}}},
            )
            made_tool = McpTool(None, spec, True, None)
            made_tool.__dict__["_call"] = lambda context, arguments: made.append(name) or "paid"
            return made_tool

        store = MemoryStore()

        def runner_of(name):
            model = (
                ScriptedModel([ToolCalls(pay_small={"euros": 1}), "done"])
                if name == "pay.small"
                else ScriptedModel(["done"])
            )
            return Runner(ChatModelAgent(name="A", tools=[served(name)], model=model), store=store)

        result = await runner_of("pay.small").query("q")
        (waiting,) = result.interrupts
        result = await runner_of("pay/small").approve(waiting)
        assert (result.status, made) == ("interrupted", [])

    run(main())
