"""Tools of the SDK that run in the program's process, and those of MCP servers: each call is a
step.
"""

import sys
from pathlib import Path

import pytest
from agents import Agent, ApplyPatchTool, ComputerTool, LocalShellTool, RunHooks, ShellTool
from agents.computer import Computer
from agents.editor import ApplyPatchResult
from agents.mcp import MCPServerStdio
from agents.testing import ModelStep, ScriptedModel, assistant_message, function_call
from openai.types.responses import ResponseComputerToolCall
from openai.types.responses.response_computer_tool_call import ActionScreenshot
from openai.types.responses.response_output_item import LocalShellCall, LocalShellCallAction

import offbook
from offbook.agents_sdk import Runner, SdkAgent
from tests.doubles.snapshots import Snapshots

ROOT = Path(__file__).parents[3]
SERVER = {
    "command": sys.executable,
    "args": ["-m", "tests.programs.mcp_server", "stdio"],
    "cwd": str(ROOT),
}


class Screen(Computer):
    """A computer whose only deed is a picture."""

    environment = "browser"
    dimensions = (1, 1)

    def __init__(self, called):
        self._called = called

    def screenshot(self):
        self._called.append("screenshot")
        return "cGljdHVyZQ=="

    def _unused(self, *_, **__):
        raise AssertionError("it is not asked for")

    click = double_click = drag = keypress = move = scroll = type = wait = _unused


class Editor:
    def __init__(self, called):
        self._called = called

    def create_file(self, operation):
        self._called.append(f"create {operation.path}")
        return ApplyPatchResult(status="completed", output="created")

    update_file = delete_file = None


def shell_call():
    return {
        "type": "shell_call",
        "call_id": "c",
        "id": "i",
        "status": "completed",
        "action": {"type": "exec", "commands": ["ls"]},
    }


def patch_call():
    return {
        "type": "apply_patch_call",
        "call_id": "c",
        "id": "i",
        "status": "completed",
        "operation": {"type": "create_file", "path": "a", "diff": "+x\n"},
    }


KINDS = {
    "shell": (
        lambda called: ShellTool(executor=lambda request: called.append("shell") or "a b"),
        shell_call,
    ),
    "local shell": (
        lambda called: LocalShellTool(
            executor=lambda request: called.append("local shell") or "a b"
        ),
        lambda: LocalShellCall(
            id="i",
            call_id="c",
            type="local_shell_call",
            status="completed",
            action=LocalShellCallAction(type="exec", command=["ls"], env={}),
        ),
    ),
    "editor": (lambda called: ApplyPatchTool(editor=Editor(called)), patch_call),
    "computer": (
        lambda called: ComputerTool(computer=Screen(called)),
        lambda: ResponseComputerToolCall(
            id="i",
            call_id="c",
            type="computer_call",
            status="completed",
            pending_safety_checks=[],
            action=ActionScreenshot(type="screenshot"),
        ),
    ),
}


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_g08_a_local_tool_that_has_run_is_not_run_again(run, kind):
    make, call = KINDS[kind]

    class Hooks(RunHooks):
        async def on_tool_start(self, context, agent, tool):
            hooked.append(tool)

    def agent(called):
        return Agent(
            name="A",
            tools=[make(called)],
            model=ScriptedModel(
                [ModelStep(output=[call()]), ModelStep(output=[assistant_message("done")])]
            ),
        )

    async def main():
        store, called = Snapshots(), []
        mine = agent(called)
        result = await Runner.run(mine, "q", store=store, run_id="r", hooks=Hooks())
        assert (result.final_output, len(called)) == ("done", 1)
        assert hooked == mine.tools, "hooks are given the program's own tool"
        again = 0
        for _call, content in store.taken:
            if b"/c\x82" not in b"".join(b"".join(records) for _, records in content.values()):
                continue
            for recovered in await offbook.Runner(
                SdkAgent(agent(called)), store=Snapshots(content), durability="step"
            ).recover():
                assert (await recovered).text == "done"
                again += 1
        assert len(called) == 1
        assert again >= 1

    hooked = []
    run(main())


def test_g08_a_tool_of_an_mcp_server_over_stdio_is_not_called_again(run):
    async def main():
        async with MCPServerStdio(params=SERVER, client_session_timeout_seconds=30) as server:

            def agent():
                steps = [function_call("pid", {}, call_id="c"), assistant_message("done")]
                return Agent(
                    name="A",
                    mcp_servers=[server],
                    model=ScriptedModel([ModelStep(output=[step]) for step in steps]),
                )

            store = Snapshots()
            first = await Runner.run(agent(), "q", store=store, run_id="r")
            outputs = [
                item.output for item in first.new_items if item.type == "tool_call_output_item"
            ]
            content = next(
                content
                for _, content in store.taken
                if b"/c\x82" in b"".join(b"".join(records) for _, records in content.values())
            )
            calls = []
            call_tool = server.call_tool
            server.call_tool = lambda *args, **kwargs: (
                calls.append(args) or call_tool(*args, **kwargs)
            )
            (recovered,) = await offbook.Runner(
                SdkAgent(agent()), store=Snapshots(content), durability="step"
            ).recover()
            events = [event async for event in recovered]
            assert events[-1].text == "done"
            assert calls == []
            assert len(outputs) == 1

    run(main())
