"""An example that serves until it is stopped, started as a user starts it who has no key."""

import asyncio
import contextlib
import os
import re
import sys
from pathlib import Path

from tests.programs.servers import free_port

EXAMPLES = Path(__file__).parents[2] / "examples"
ABOUT_MODELS = re.compile(r".*_API_KEY|OPENAI_.*")


@contextlib.asynccontextmanager
async def served_example(name, **environment):
    """Gives its port, and the stream of what it prints. A traceback in its log fails the test."""
    port = free_port()
    env = {key: value for key, value in os.environ.items() if not ABOUT_MODELS.fullmatch(key)}
    env |= {"PORT": str(port), "PYTHONUNBUFFERED": "1", **environment}
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-W",
        "error",
        str(EXAMPLES / f"{name}.py"),
        env=env,
        stdout=pipe,
        stderr=pipe,
    )
    logged = bytearray()
    try:
        async with asyncio.timeout(60):
            while b"running on" not in logged:
                line = await process.stderr.readline()
                assert line, logged.decode()
                logged += line
        yield port, process.stdout
    finally:
        process.terminate()
        logged += (await process.communicate())[1]
    assert b"Traceback" not in logged, logged.decode()
