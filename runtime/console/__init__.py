"""The console: a page in the browser in which a service's owner sees what its runs do, and acts on it. Needs the extra `console`.

    json_forms      runs, systems and events as the page is given them, with what is long cut short
    requests        what a request asks for: its fields, each with its bounds; what an error is answered with
    gate            who may ask: token, origin, and the headers of every answer
    look_only       agents of which there is only the name, so that their runs can be looked at
    run_list        the runs of a store, a page at a time, and how many there are
    kept_steps      what the store keeps of one run: steps, values, saves, what it was asked
    answer_log      who has answered what a run waited for
    event_feed      the events of a run, in batches, as a stream to the browser
    begun_runs      the runs that are begun from here, and go on without a browser
    now             what is going on at this moment, for all who look
    desk            all of that for one Runner
    looking         the routes that only look
    acting          the routes that act on a run
    talking         the routes that say something: sessions, and the page Try
    pages           the page and its files
    app             the whole as an ASGI app
    serving         the same as a server of its own

The folder `static` has the page: HTML, CSS and ES modules, as they are written.

It must never make HTML of anything that a run, a user or a model has said, nor write such a thing to the log.
"""

from .app import console_app
from .serving import serve_console

__all__ = ["console_app", "serve_console"]
