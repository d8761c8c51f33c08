"""A Jupyter kernel, and a client that has it execute cells.

Prints one line of JSON for each cell: what it displayed or printed, and its error.
"""

import json
import sys

from jupyter_client.manager import start_new_kernel

SECONDS = 30


def execute(client, code):
    seen = {"shown": "", "error": None}

    def hook(message):
        content = message["content"]
        if message["msg_type"] == "stream" and content["name"] == "stdout":
            seen["shown"] += content["text"]
        elif message["msg_type"] == "execute_result":
            seen["shown"] += content["data"]["text/plain"]
        elif message["msg_type"] == "error":
            seen["error"] = f"{content['ename']}: {content['evalue']}"

    client.execute_interactive(code, timeout=SECONDS, output_hook=hook)
    return seen


if __name__ == "__main__":
    manager, client = start_new_kernel(kernel_name="python3", startup_timeout=SECONDS)
    try:
        for cell in json.load(sys.stdin):
            print(json.dumps(execute(client, cell)), flush=True)
    finally:
        client.stop_channels()
        manager.shutdown_kernel()
        print(json.dumps({"alive": manager.is_alive()}), flush=True)
