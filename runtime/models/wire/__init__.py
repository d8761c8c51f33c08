"""Direct HTTP requests to a provider, without a client library in between.

    protocol            the protocol of a transport, and its error
    sse                 parsing of server-sent events, and their values
    decode              JSON decoding by the fastest available decoder
    body                request bodies, in which each message is encoded once
    target              address, headers and errors, taken from the `openai` client
    options             the arguments of an `openai` client; validation of headers
    environment         proxies, certificates and the limit on open files
    names               host name lookup in separate threads
    aiohttp_transport   the transport on aiohttp
    client              one model's requests on one loop
    loop_clients        one client for each event loop
    opening             construction of such a client

Only `aiohttp_transport`, `decode`, `environment`, `names` and `opening` are imported when a model
is first called, because their imports are slow. No error or text ever contains a key.
"""
