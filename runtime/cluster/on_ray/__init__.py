"""Ray: the source of the hosts' processes, and the transport of bytes to them.

    environment       the package, its version, its settings, and the safety warning
    calls             blocking calls of Ray, with a limit
    actor             the process of a host
    connection        the connection of this process to Ray
    transport         the connection to the hosts

It is imported only when a cluster is used, because importing Ray takes half a second.
"""
