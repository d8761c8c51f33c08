"""`McpTools`: tools of real servers of the SDK, over stdio and streamable HTTP, also of such that
die, hang, flood.
"""

import asyncio
import contextlib
import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from mcp.client import stdio

from offbook.actors import ChatModelAgent, McpTools
from offbook.runtime import (
    ActorSystem,
    ImagePart,
    MemoryStore,
    Runner,
    ScriptedModel,
    ToolCalls,
    ToolError,
    UsageError,
)
from offbook.runtime.mcp.connection import McpServer
from offbook.runtime.mcp.serving import mcp_server

PROGRAM = Path(__file__).parents[2] / "programs" / "mcp_server.py"
STDIO = [sys.executable, str(PROGRAM), "stdio"]
PATIENCE = 30

# The SDK's HTTP client and its server do not close all that they open.
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


def agent(tools, *calls, **options):
    return ChatModelAgent(
        name="A",
        model=ScriptedModel([*(ToolCalls(call) for call in calls), "done"]),
        tools=[tools],
        **options,
    )


async def told(system, tools, *calls, **options):
    """What each call has come to, as the model is told."""
    result = await asyncio.wait_for(
        Runner(agent(tools, *calls), system=system, **options).query("go"), PATIENCE
    )
    result.raise_for_error()
    return [
        event.message
        for event in result.events
        if event.message is not None and event.message.role == "tool"
    ]


@contextlib.asynccontextmanager
async def http_server():
    """A server over streamable HTTP, and its URL."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(PROGRAM), "http", str(port), stderr=subprocess.DEVNULL
    )
    try:
        while True:
            with contextlib.suppress(OSError):
                _, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.close()
                await writer.wait_closed()
                break
            await asyncio.sleep(0.02)
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.kill()
        await process.wait()


@pytest.mark.slow
@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_an_agent_calls_the_tools_of_a_server(run, transport):
    async def main():
        async with contextlib.AsyncExitStack() as stack:
            if transport == "stdio":
                tools = McpTools(command=STDIO)
            else:
                tools = McpTools(
                    url=await stack.enter_async_context(http_server()), headers={"X-Tenant": "acme"}
                )
            system = await stack.enter_async_context(ActorSystem())
            calls = [
                ("add", {"a": 2, "b": 3}),
                ("add", {"a": 2}),
                ("picture", {}),
                ("fail", {}),
                ("far", {}),
                ("grow", {}),
            ]
            runner = Runner(agent(tools, *calls), system=system)
            result = await asyncio.wait_for(runner.query("go"), PATIENCE)
            said = [
                event.message
                for event in result.events
                if event.message is not None and event.message.role == "tool"
            ]
            assert [message.text for message in said[:2]] == ["5", "3"]
            assert any(
                isinstance(part, ImagePart) and part.data == b"\x89PNG dot"
                for part in said[2].content
            )
            assert "fail" in said[3].text
            assert said[4].text == "there"
            progress = [
                event.custom_output for event in result.events if event.custom_output is not None
            ]
            assert progress[0]["message"].startswith("step")
            # The list has changed: the next run has the new tool.
            deadline = asyncio.get_running_loop().time() + PATIENCE
            while (await told(system, tools, ("grown", {})))[0].text != "grown":
                assert asyncio.get_running_loop().time() < deadline
            if transport == "http":
                assert (await told(system, tools, ("headers", {})))[0].text == "acme"

    run(main())


@pytest.mark.slow
def test_one_connection_is_for_all_runs_and_a_server_that_dies_is_started_again(run):
    async def main():
        tools = McpTools(command=STDIO)
        async with ActorSystem() as system:
            pids = await asyncio.gather(*(told(system, tools, ("pid", {})) for _ in range(10)))
            assert len({message.text for (message,) in pids}) == 1
            (lost, again) = await told(system, tools, ("die", {}), ("pid", {}))
            assert (
                "lost its connection while it ran 'die'. The tool may have completed" in lost.text
            )
            assert again.text != pids[0][0].text
            # More than it can say to a consumer: it is shown now and then.
            result = await asyncio.wait_for(
                Runner(agent(tools, ("flood", {})), system=system).query("go"), PATIENCE
            )
            assert result.text == "done"
            assert len(result.events) < 1500
            # One that hangs is ended with its run, and hinders no other one.
            hanging = Runner(agent(tools, ("hang", {})), system=system).query("go")
            async for event in hanging:
                if event.message is not None and event.message.tool_calls:
                    break
            assert (await told(system, tools, ("add", {"a": 1})))[0].text == "2"

    run(main())


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_question_of_the_server_interrupts_the_run(run, mode):
    async def main():
        tools = McpTools(command=STDIO)
        tools._server = replace(tools._server, mode=mode)
        async with tools, ActorSystem() as system:
            for answer, said in (({"size": "XL"}, "accept XL"), (False, "decline")):
                runner = Runner(agent(tools, ("order", {})), system=system, store=MemoryStore())
                first = await asyncio.wait_for(runner.query("go", checkpoint_id="c"), PATIENCE)
                assert first.status == "interrupted"
                assert first.interrupts[0].info["message"] == "Which size?"
                assert "size" in first.interrupts[0].info["schema"]["properties"]
                result = await asyncio.wait_for(runner.resume("c", data=answer), PATIENCE)
                assert [
                    event.message.text.strip()
                    for event in result.events
                    if event.message.role == "tool"
                ] == [said]

    run(main())


@pytest.mark.slow
def test_a_filter_and_an_approval(run):
    async def main():
        async with McpTools(command=STDIO, tools=["add", "pid"], needs_approval=["add"]) as tools:
            model = ScriptedModel([ToolCalls(("add", {"a": 1})), "done"])
            runner = Runner(
                ChatModelAgent(name="A", model=model, tools=[tools]), store=MemoryStore()
            )
            first = await asyncio.wait_for(runner.query("go", checkpoint_id="c"), PATIENCE)
            assert first.status == "interrupted"
            assert sorted(spec.name for spec in model.requests[0].tools) == ["add", "pid"]
            assert (
                await asyncio.wait_for(runner.approve(first.interrupts[0]), PATIENCE)
            ).text == "done"
        with pytest.raises(UsageError, match="has no tool 'sub'"):
            async with McpTools(command=STDIO, tools=["sub"]):
                pass

    run(main())


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (["/no/such/program"], "cannot be used: the program"),
        ([sys.executable, "-c", "pass"], "cannot be used: "),
        ([sys.executable, "-c", "import time; time.sleep(60)"], "has not answered in time"),
    ],
)
def test_a_broken_server_is_a_clear_error(run, monkeypatch, command, said):
    monkeypatch.setattr(stdio, "PROCESS_TERMINATION_TIMEOUT", 0.1)  # until one that hangs is ended

    async def main():
        with pytest.raises(ToolError, match=said):
            async with McpTools(command=command, connect_timeout=0.5):
                pass
        async with ActorSystem() as system:
            tools = McpTools(command=command, connect_timeout=0.5)
            result = await asyncio.wait_for(
                Runner(agent(tools), system=system).query("go"), PATIENCE
            )
            assert result.status == "failed"
            assert said in str(result.error)

    run(main())


@pytest.mark.parametrize(
    "given",
    [
        {
            "command": [
                sys.executable,
                "-c",
                "import sys; sys.exit('hunter-42')",
                "--api-key=hunter-42",
            ]
        },
        {"command": ["/no/such/program", "hunter-42"]},
        {
            "url": "http://user:hunter-42@127.0.0.1:9/mcp/hunter-42?key=hunter-42",
            "headers": {"authorization": "Bearer hunter-42"},
        },
    ],
)
def test_no_error_shows_the_keys_of_a_server(run, caplog, given):
    async def main():
        tools = McpTools(**given, connect_timeout=5)
        with pytest.raises(ToolError, match="the MCP server") as refused:
            async with tools:
                pass
        async with ActorSystem() as system:
            result = await asyncio.wait_for(
                Runner(agent(tools), system=system).query("go"), PATIENCE
            )
        return f"{refused.value} {result.error} {tools!r} {tools._server!r}"

    with caplog.at_level("INFO", "offbook"):
        said = run(main())
    assert "hunter" not in said + caplog.text


def test_what_a_server_is_given_is_taken_out_of_what_it_says():
    server = McpServer(
        url="https://host/mcp?key=hunter-42", headers={"authorization": "Bearer hunter-43"}
    )
    assert (
        server.without_secrets("401 for 'https://host/mcp?key=hunter-42': hunter-43 is no key")
        == "401 for '…': … is no key"
    )
    assert str(server) == "the MCP server 'https://host'"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "either command="),
        ({"command": ["x"], "url": "http://x"}, "either command="),
        ({"command": "python server.py"}, "a list of strings"),
        ({"url": "localhost:8000"}, "http\\(s\\) URL"),
        ({"command": ["x"], "headers": {"a": "b"}}, "apply only to a server at a url"),
        ({"command": ["x"], "tools": "add"}, "tools must be a list of names"),
        ({"command": ["x"], "timeout": 0}, "above 0"),
    ],
)
def test_what_is_wrong_is_said_at_once(given, said):
    with pytest.raises(UsageError, match=said):
        McpTools(**given)


@pytest.mark.slow
def test_override_replaces_a_tool_of_a_server(run):
    async def main():
        async with ActorSystem() as system:
            tools = McpTools(command=STDIO)
            runner = Runner(agent(tools), system=system)
            with runner.override(
                model=ScriptedModel([ToolCalls(("add", {"a": 1, "b": 2})), "done"]),
                tools={"add": lambda a, b: "faked"},
            ):
                result = await asyncio.wait_for(runner.query("go"), PATIENCE)
            assert [
                event.message.text for event in result.events if event.message.role == "tool"
            ] == ["faked"]

    run(main())


@pytest.mark.slow
def test_an_agent_is_served_as_a_tool(run, tmp_path):
    (tmp_path / "agents.py").write_text(
        "from offbook.actors import Agent\n"
        "from offbook.runtime import AgentEvent\n"
        "class Says(Agent):\n"
        "    async def run(self, input, context):\n"
        "        yield AgentEvent.say(' / '.join(message.text for message in input.messages))\n"
        "agent = Says(name='says it', description='Says it.')\n"
    )

    async def main():
        command = [
            sys.executable,
            "-m",
            "tests.programs.offbook_command",
            "serve",
            "--mcp",
            str(tmp_path / "agents.py"),
        ]
        async with (
            McpTools(command=command, cwd=Path(__file__).parents[3]) as tools,
            ActorSystem() as system,
        ):
            name = "ask_says_it"
            calls = [
                (name, {"request": "one"}),
                (name, {"request": "two", "conversation": "c"}),
                (name, {"request": "three", "conversation": "c"}),
            ]
            said = await told(system, tools, *calls)
            assert said[0].text == "one"
            assert said[2].text.startswith("two / ")
            assert said[2].text.endswith("three")

    run(main())


@pytest.mark.slow
def test_a_client_has_conversations_of_its_own(run):
    """Neither a session of the store nor another client's conversation can be named."""
    from mcp.client.client import Client
    from mcp.server.auth.middleware.auth_context import auth_context_var
    from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
    from mcp.server.auth.provider import AccessToken

    async def ask(server, user):
        auth_context_var.set(AuthenticatedUser(AccessToken(token="t", client_id=user, scopes=[])))
        async with Client(server) as client:
            return (
                (await client.call_tool("ask_A", {"request": f"of {user}", "conversation": "c"}))
                .content[0]
                .text
            )

    async def main():
        said = ChatModelAgent(
            name="A",
            model=ScriptedModel(
                [lambda request: " / ".join(one.text for one in request.messages)] * 4
            ),
        )
        async with ActorSystem() as system:
            runner = Runner(said, system=system, store=MemoryStore())
            await runner.session("c").query("a secret")
            server = mcp_server(runner)
            answers = [
                await asyncio.create_task(ask(server, user)) for user in ("ada", "bob", "ada")
            ]
        assert [answer.count("of ") for answer in answers] == [1, 1, 3], answers
        assert "secret" not in "".join(answers)

    run(main())
