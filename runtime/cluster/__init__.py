"""The same program on many machines, on Ray: `Cluster.start("shop:host", name="shop", hosts=8)`.

Web workers that share a PostgreSQL or Redis, and call `recover()`, do not need it: docs/guides/scaling.md says who does. Ray places processes and carries
calls; this room adds who may write a session, order, runs that go on after a loss, and drain. Where a key belongs is a hint; the store is the truth.

    errors           what can go wrong
    limits, spec     how much a host takes on; what it is started with
    names            what is named as "module:attribute"
    placement        where a key belongs
    host_list        the hosts, as they keep their list in the store
    link_order       requests in order, none lost, none done twice
    event_batch      events and results as bytes
    run_form         what is asked of a run, as bytes
    control          what a host says of itself
    transport        what is needed of whatever starts processes and carries bytes
    host             the process in which runs live
    client           the program that asks for them
    on_ray           the one transport that there is
    __main__         the command: python -m understudy.runtime.cluster

It must never pickle a value, nor load what a message names and the cluster does not allow. `import understudy.runtime` imports nothing of it.
"""

from .client.cluster import Cluster
from .client.keyed import KeyedActor
from .client.refs import RemoteRef
from .client.run import ClusterRun
from .client.runner import ClusterRunner
from .client.session import ClusterSession
from .client.stats import ClusterStats, HostStats
from .errors import ClusterBusy, ClusterError, HostLost, VersionMismatch

__all__ = [
    "Cluster",
    "ClusterBusy",
    "ClusterError",
    "ClusterRun",
    "ClusterRunner",
    "ClusterSession",
    "ClusterStats",
    "HostLost",
    "HostStats",
    "KeyedActor",
    "RemoteRef",
    "VersionMismatch",
]
