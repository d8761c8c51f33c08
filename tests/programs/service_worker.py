"""One worker of examples/service.py, whose tool takes its time and writes down each call:
`service_worker.py PORT LOG STORE`, with a store's recipe as JSON.
"""

import asyncio
import json
import logging
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))

import service
import uvicorn

from offbook import runtime
from offbook.actors import ChatModelAgent, ToolContext, tool
from offbook.runtime import Message, MessageDelta, ToolCall

logging.getLogger("offbook.tools").setLevel(logging.ERROR)  # the tool fails on purpose
PORT, LOG, (STORE, ARGUMENTS, OPTIONS) = int(sys.argv[1]), sys.argv[2], json.loads(sys.argv[3])


class Steps:
    """Calls the tool twice, then one that needs approval, and then says word by word how often it
    has.
    """

    async def generate(self, request):
        raise AssertionError

    async def stream(self, request):
        await asyncio.sleep(0.05)
        since = max(
            place for place, message in enumerate(request.messages) if message.role == "user"
        )
        done = sum(message.role == "tool" for message in request.messages[since:])
        if done < 2:
            yield Message.assistant(
                "", tool_calls=(ToolCall(f"call-{done}", "work", '{"key": "secret-argument"}'),)
            )
        elif done == 2:
            yield Message.assistant("", tool_calls=(ToolCall("call-2", "refund", '{"order": 7}'),))
        else:
            words = f"{done} steps for {request.messages[since].text}"
            for word in words.split(" "):
                yield MessageDelta(word if word == str(done) else f" {word}")
                await asyncio.sleep(0.01)
            yield Message.assistant(words)


@tool
async def work(key: str, context: ToolContext) -> str:
    """Work."""
    await asyncio.sleep(0.05)
    file = os.open(LOG, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(file, f"{context.run_id} {context.idempotency_key} {os.getpid()}\n".encode())
    os.close(file)
    if context.call_id == "call-1":
        raise ValueError("secret-error at postgresql://app:secret-password@db/app")
    return "secret-result"


service.open_store = lambda: getattr(runtime, STORE)(*ARGUMENTS, **OPTIONS)
service.agent = ChatModelAgent(name="Shop", tools=[work, service.refund], model=Steps())
uvicorn.run(
    service.app, host="127.0.0.1", port=PORT, log_level="warning", timeout_graceful_shutdown=15
)
