"""An agent as an ASGI app that supports Agent2Agent.

    settings            the settings of the card; limits on clients
    plain_store         support for a store with get and set alone
    auth                authentication
    card                the card
    gate                checks of a request before it is parsed
    json_bounds         bounds on the JSON of a request, checked before it is parsed
    call_context        the caller of an operation, and the owner of its results
    request_handler     the operations, over any transport
    wire_json           the protocol's JSON, to and from protobuf
    event_stream        a client's stream, as bytes
    quick_routes        a fast path for sending a message over HTTP
    request_forms       refusal of malformed requests; completion of old ones
    grpc_server         the same over gRPC
    app                 the routes, and the lifetime of a server
    making              assembles the parts

The text of an exception never reaches a client.
"""
