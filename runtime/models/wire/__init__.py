"""The wire: requests to a provider, and its replies, without a client in between.

    protocol            what a transport is, and what it raises
    sse                 server-sent events, cut by hand
    events              their values, and what ends a stream
    decode              JSON, by the fastest decoder that is there
    body                a request's body, of messages that are written once
    target              the address, the headers and the errors, as the `openai` client has them
    header_values       what a header can hold
    options             the arguments of an `openai` client
    environment         proxies, certificates and the limit on open files
    aiohttp_transport   the transport on aiohttp
    client              one model's requests on one loop
    loop_clients        one client for each event loop
    opening             how such a client is made

Only `aiohttp_transport`, `decode`, `environment` and `opening` wait until a model is first asked: they need what takes time to import. It must never show a
key: not in an error, not in a text.
"""
