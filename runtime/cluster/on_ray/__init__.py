"""Ray: where the processes of hosts come from, and how bytes get to them.

    environment      the package, its version, its settings, what is said of safety
    actor            the process of a host
    transport        the way to the hosts

It must never be imported by what is not about to use a cluster: Ray takes half a second.
"""
