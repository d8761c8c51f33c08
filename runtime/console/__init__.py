"""The console: a web page on which a service's owner sees its runs, and acts on them.

Needs the extra `console`.

    json_forms      runs, systems and events as JSON for the page, with long values truncated
    requests        validation of request fields; error responses
    gate            authentication, origin checks, and the headers of every response
    look_only       stand-ins for agents without a definition, to inspect their runs
    run_list        the runs of a store, a page at a time, and their number
    kept_steps      the stored data of one run: steps, values, saves, input
    model_calls     the requests of this process's model calls, while content capture is on
    answer_log      a log of the people who answered a run's interrupts
    event_feed      the events of a run, in batches, as a stream to the browser
    begun_runs      the runs started from here, which continue without a browser
    now             a snapshot of the current state, shared by all pages
    desk            all of that for one Runner
    looking         the read-only routes
    acting          the routes that act on a run
    talking         the routes that send messages: sessions, and the page Try
    pages           the page and its files
    app             the console as an ASGI app
    serving         the console as a separate server

The folder `static` has the page: HTML, CSS and ES modules, unbundled.

Text from runs, users or models is never turned into HTML, nor written to the log.
"""

from .app import console_app
from .serving import serve_console

__all__ = ["console_app", "serve_console"]
