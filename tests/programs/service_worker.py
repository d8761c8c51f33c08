"""One worker of examples/service.py, on the port given, whose tool takes its time and writes down each call: `service_worker.py PORT LOG`."""

import asyncio
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))

import service
import uvicorn

from understudy.actors import ChatModelAgent, ToolContext, tool
from understudy.runtime import Message, ToolCall

PORT, LOG = int(sys.argv[1]), sys.argv[2]


class Steps:
    """Calls the tool three times, and then says how often it has."""

    async def generate(self, request):
        await asyncio.sleep(0.05)
        since = max(place for place, message in enumerate(request.messages) if message.role == "user")
        done = sum(message.role == "tool" for message in request.messages[since:])
        if done == 3:
            return Message.assistant(f"{done} steps for {request.messages[since].text}")
        return Message.assistant("", tool_calls=(ToolCall(f"call-{done}", "work", "{}"),))


@tool
async def work(context: ToolContext) -> str:
    """Work."""
    await asyncio.sleep(0.05)
    file = os.open(LOG, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(file, f"{context.run_id} {context.idempotency_key} {os.getpid()}\n".encode())
    os.close(file)
    return "worked"


service.agent = ChatModelAgent(name="Shop", tools=[work, service.refund], model=Steps())
uvicorn.run(service.app, host="127.0.0.1", port=PORT, log_level="warning", timeout_graceful_shutdown=15)
