"""An agent that does what the compatibility kit's message ids ask for, served by the public API:
what the kit is run against, and what tests hold it to.

python -m tests.programs.a2a_conformance_server [--port 9999] [--grpc-port 50051] [--bare]
"""

import argparse
import asyncio
import json

import uvicorn

from offbook.actors import Agent
from offbook.runtime import AgentEvent, CustomAction, Options
from offbook.runtime.a2a import (
    AgentCardSettings,
    ArtifactUpdate,
    DataPart,
    FilePart,
    Reject,
    Reply,
    SkillSettings,
    Status,
    WebhookPolicy,
    a2a_app,
)

WORKING_SECONDS = 8.0


def said(action):
    return AgentEvent.of(action=CustomAction(action))


class Conforming(Agent):
    """Keys on the beginning of the message's id."""

    async def run(self, input, context):
        message_id = context.options[
            "message_id"
        ]  # of the message that has come, be it the first or the answer to a question
        for prefix, play in PLAYS:
            if message_id.startswith(prefix):
                async for event in play(context):
                    yield event
                return
        yield AgentEvent.say("Hello from TCK")


async def artifact_file_url(_context):
    yield said(
        ArtifactUpdate(
            "file",
            FilePart("https://example.com/output.txt", media_type="text/plain", name="output.txt"),
        )
    )


async def artifact_file(_context):
    yield said(
        ArtifactUpdate(
            "file", FilePart(data=b"file content", media_type="text/plain", name="output.txt")
        )
    )


async def artifact_data(_context):
    yield said(ArtifactUpdate("data", DataPart({"key": "value", "count": 42})))


async def message_response(_context):
    yield said(Reply("Direct message response"))


async def input_required(context):
    yield context.interrupt("Which one?")


async def reject(_context):
    yield said(Reject("rejected"))


async def chunked(_context):
    yield said(Status())
    yield said(ArtifactUpdate("chunks", "chunk-1 ", last=False))
    yield said(ArtifactUpdate("chunks", "chunk-2", append=True, last=True))


async def stays_working(_context):
    yield said(Status())
    await asyncio.sleep(WORKING_SECONDS)


async def nothing(_context):
    return
    yield


def text(said_text):
    async def play(_context):
        yield AgentEvent.say(said_text)

    return play


# The longer beginnings first.
PLAYS = [
    ("tck-artifact-text", text("Generated text content")),
    ("tck-artifact-file-url", artifact_file_url),
    ("tck-artifact-file", artifact_file),
    ("tck-artifact-data", artifact_data),
    ("tck-message-response", message_response),
    ("tck-input-required", input_required),
    ("tck-reject-task", reject),
    ("tck-stream-001", text("Stream hello from TCK")),
    ("tck-stream-002", nothing),
    ("tck-stream-003", text("Stream task lifecycle")),
    ("tck-stream-ordering-001", text("Ordered output")),
    ("tck-stream-artifact-text", text("Streamed text content")),
    ("tck-stream-artifact-file", artifact_file),
    ("tck-stream-artifact-chunked", chunked),
    ("test-resubscribe-message-id", stays_working),
]


def make(port, grpc_port=None, *, bare=False):
    """The app. `bare`: without push notifications and extended card."""
    skill = SkillSettings(
        "conformance",
        "Conformance",
        "Does what message ids ask for.",
        ("test",),
        ("tck-complete-task",),
    )
    card = AgentCardSettings(
        url=f"http://127.0.0.1:{port}",
        skills=(skill,),
        provider="offbook",
        provider_url="https://example.com",
        push_notifications=not bare,
        extended=None if bare else AgentCardSettings(description="The extended card."),
    )
    webhooks = WebhookPolicy(allow_http=True, allow_private=True, secret_key="conformance")
    grpc = None if grpc_port is None else f"127.0.0.1:{grpc_port}"
    agent = Conforming(name="conforming", description="Does what the kit asks for.")
    return a2a_app(
        agent,
        card=card,
        webhooks=webhooks,
        grpc=grpc,
        run_options=lambda _task, message, _metadata: Options(message_id=message.message_id),
    )


def main():
    parser = argparse.ArgumentParser(description=json.dumps(__doc__.splitlines()[0]))
    parser.add_argument("--port", type=int, default=9999)
    parser.add_argument("--grpc-port", type=int, default=50051)
    parser.add_argument("--bare", action="store_true")
    args = parser.parse_args()
    uvicorn.run(
        make(args.port, args.grpc_port, bare=args.bare),
        host="127.0.0.1",
        port=args.port,
        log_level="warning",
    )


if __name__ == "__main__":
    main()
