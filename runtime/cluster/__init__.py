"""The same program on many machines, on Ray: `Cluster.start("shop:host", name="shop", hosts=8)`.

Web workers that share a PostgreSQL or Redis, and call `recover()`, do not need it;
docs/guides/scaling.md explains when a cluster is useful. Ray places processes and carries calls.
This package adds exclusive session writers, message order, runs that survive a loss, and draining.
The placement of a key is only a hint; the store is authoritative.

    errors            the errors of a cluster
    limits, spec      the limits of a host; the data that it is started with
    names             objects named as "module:attribute"
    placement         the host that a key belongs to
    host_list         the list of hosts, stored by the hosts
    link_order        requests in order, none lost, none done twice
    event_batch       events and results as bytes
    run_form          requests for runs as bytes
    control           a host's report about itself
    transport         the interface for starting processes and carrying bytes
    host              the process that runs the agents
    client            the program that requests runs
    on_ray            the only transport
    __main__          the command: python -m offbook.runtime.cluster

No value is pickled, and an object named by a message is loaded only if the cluster allows it.
`import offbook.runtime` imports nothing of this package.
"""

from .client.cluster import Cluster
from .client.keyed import KeyedActor
from .client.refs import RemoteRef
from .client.run import ClusterRun
from .client.runner import ClusterRunner
from .client.session import ClusterSession
from .client.stats import ClusterStats, HostStats
from .client.watch import HostChange
from .errors import ClusterBusy, ClusterError, HostLost, VersionMismatch

__all__ = [
    "Cluster",
    "ClusterBusy",
    "ClusterError",
    "ClusterRun",
    "ClusterRunner",
    "ClusterSession",
    "ClusterStats",
    "HostChange",
    "HostLost",
    "HostStats",
    "KeyedActor",
    "RemoteRef",
    "VersionMismatch",
]
