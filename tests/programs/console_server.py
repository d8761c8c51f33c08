"""A console of its own, in a process: `console_server.py STORE TOKEN` serves on any free port, and
says where.
"""

import sys

from offbook.actors import ChatModelAgent
from offbook.runtime import ScriptedModel, SQLiteStore
from offbook.runtime.console import serve_console

store = SQLiteStore(sys.argv[1])
try:
    serve_console(
        ChatModelAgent(name="Desk", model=ScriptedModel(["hello"]))
        if sys.argv[2] != "look"
        else None,
        store=store,
        port=0,
        token=None if len(sys.argv) < 4 else sys.argv[3],
        say=lambda text: print(text, flush=True),
    )
except KeyboardInterrupt:
    print("ended", flush=True)
finally:
    store.close()
