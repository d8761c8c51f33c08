"""Calling remote agents.

    limits          limits on sizes, counts and times
    bounded_http    HTTP with bounded responses, and no redirects
    pump            reads a stream in a separate task
    refusals        conversion of the SDK's errors
    interfaces      chooses an interface of a card
    former_servers  servers of versions 0.2.5 and 0.3
    given_transport custom transports
    connection      one agent, on one event loop: wraps the SDK's client
    client          `A2AClient`

Responses are untrusted: one that is too large, too long or about another task raises an error.
`client`, `given_transport` and `limits` are importable without the SDK; the others are imported
when a client is used.
"""
