"""An agent as an ASGI app that speaks Agent2Agent.

    settings            what the card says, as the program that serves the agent gives it
    auth                who may ask
    card                the card
    gate                what a request has to pass before anything of it is understood
    call_context        who makes a call, and to whom belongs what it makes
    request_handler     the operations, by whichever transport
    wire_json           the protocol's JSON, to and from protobuf
    event_stream        a client's stream, as bytes
    quick_routes        sending a message over HTTP, without detours
    grpc_server         the same over gRPC
    app                 the routes, and the life of a server
    making              how the parts are chosen and put together

It must never let the text of an exception reach a client.
"""
