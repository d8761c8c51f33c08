"""The troubles of a store's server that a storm can add, and what may not be left in the store when
it is over.

Owns: how each trouble is brought about and ended, and the look at what is left. `storm.py` says
when.
"""

import asyncio
import contextlib
import random
import sqlite3
import threading
import time
from pathlib import Path

import psycopg
import redis

from offbook import runtime
from tests.programs.lossy import LossyLine
from tests.programs.replicas import PostgresStandby, RedisReplica, hand_over
from tests.programs.servers import PASSWORD, PostgresServer, RedisServer
from tests.programs.storm_worker import LEASE_SECONDS

USER = "worker"
_CALM = (1.0, 6.0)  # seconds between two troubles: what has failed is to be continued in between
_SHORT, _LONG = (
    (0.2, 4.0),
    (9.0, 14.0),
)  # seconds for which one lasts: less, and more, than a call waits


class Troubles:
    """The troubles of one store. `recipe`: how the processes of the storm reach it."""

    names = ()
    loses = False
    """Whether the newest writes are lost now and then: the store promises less then."""

    def schedule(self, seed, seconds):
        """What happens, and when: (seconds since the beginning, name, for how many seconds).

        One after the other.
        """
        dice = random.Random(f"{seed} troubles")
        at = dice.uniform(*_CALM)
        while at < seconds:
            name, lasts = (
                dice.choice(self.names),
                dice.uniform(*(_LONG if dice.random() < 0.25 else _SHORT)),
            )
            yield at, name, min(lasts, max(0.2, seconds - at))
            at += lasts + dice.uniform(*_CALM)

    def begin(self, name):
        getattr(self, name)(True)

    def end(self, name):
        getattr(self, name)(False)

    def left(self):
        """What is left when all processes have ended: sentences."""
        raise NotImplementedError

    def close(self):
        pass

    def _pruned(self, recipe):
        """Remove what was left by processes that were killed, as each service does now and then."""
        kind, args, kwargs = recipe
        time.sleep(LEASE_SECONDS + 0.5)
        with getattr(runtime, kind)(*args, **kwargs) as store:
            asyncio.run(_prune(store))


async def _prune(store):
    await store.prune()
    await store.aclose()


class ServerTroubles(Troubles):
    """Those of a server behind a line."""

    def __init__(self, server, *, loses=False):
        self._server = server.start()
        self._line = LossyLine(server.port)
        self._next = None  # the server that takes over
        self._former = None  # the server that was replaced last
        if loses:
            self.loses = True
            self.names = ("lost_writes", "lost_writes", *self.names)

    def stopped(self, on):
        self._server.pause() if on else self._server.go_on()

    def restarted(self, on):
        self._server.stop() if on else self._server.start()

    def killed(self, on):
        self._server.kill() if on else self._server.start()

    def cut(self, on):
        if on:
            self._line.cut()

    def silent(self, on):
        self._line.hang() if on else self._line.go_on()

    def slow(self, on):
        self._line.delay(0.05 if on else 0.0)

    def lost_writes(self, on):
        """A fail-over to a replica that lacks what was written since this trouble began."""
        if on:
            self._slow_line = LossyLine(self._server.port)
            self._next = self._follower(self._slow_line.port)
            self._slow_line.hang()
        else:
            self._server.kill()
            self._next.promote()
            self._slow_line.close()
            self._replace()

    def _follower(self, port):
        raise NotImplementedError

    def _replace(self):
        self._line.lead_to(self._next.port)
        if self._former is not None:
            self._former.remove()
        self._former, self._server, self._next = self._server, self._next, None

    def close(self):
        self._line.close()
        for server in (self._server, self._former, self._next):
            if server is not None:
                server.remove()


class PostgresTroubles(ServerTroubles):
    names = (
        "stopped",
        "restarted",
        "killed",
        "cut",
        "silent",
        "slow",
        "hung_commits",
        "no_connections",
        "failed_over",
    )

    def __init__(self, **how):
        super().__init__(PostgresServer(), **how)
        self._ask(
            f"CREATE ROLE {USER} LOGIN PASSWORD '{PASSWORD}'",
            "GRANT ALL ON SCHEMA public TO PUBLIC",
        )
        # What was committed is in the kernel's hands, whatever is killed.
        self._ask(f"ALTER ROLE {USER} SET synchronous_commit = on")
        address = (
            f"host=127.0.0.1 port={self._line.port} user={USER} password={PASSWORD} "
            "dbname=postgres sslmode=disable gssencmode=disable"
        )
        self.recipe = "PostgresStore", (address,), {"prefix": "storm_"}

    def _follower(self, port):
        return PostgresStandby(self._server, port).start()

    def failed_over(self, on):
        """The primary is lost. After a while a synchronous standby, which has everything, takes
        over.
        """
        if on:
            self._next = self._follower(self._server.port)
            self._ask(
                f"ALTER SYSTEM SET synchronous_standby_names = '{PostgresStandby.NAME}'",
                "SELECT pg_reload_conf()",
            )
            while self._ask("SELECT sync_state FROM pg_stat_replication") != [("sync",)]:
                time.sleep(0.02)
            with psycopg.connect(
                self._server.dsn, autocommit=True, options="-c synchronous_commit=on"
            ) as connection:
                # When this is there, so is all that was committed before.
                connection.execute("SELECT pg_logical_emit_message(true, 'storm', '')")
            self._server.kill()
        else:
            self._next.promote()
            self._replace()

    def hung_commits(self, on):
        """Each commit waits for a standby that is not there."""
        self._ask(
            "ALTER SYSTEM SET synchronous_standby_names = 'gone'"
            if on
            else "ALTER SYSTEM RESET synchronous_standby_names",
            "SELECT pg_reload_conf()",
        )

    def no_connections(self, on):
        self._ask(f"ALTER ROLE {USER} CONNECTION LIMIT {0 if on else -1}")
        if on:
            self._ask(
                f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '{USER}'"
            )

    def left(self):
        self._pruned(self.recipe)
        counts = {
            "advisory locks": "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'",
            "owners": "SELECT count(*) FROM storm_owners",
            "claims with an owner": "SELECT count(*) FROM storm_claims WHERE owner IS NOT NULL",
            "watched keys": (
                "SELECT count(*) FROM storm_watched WHERE until > clock_timestamp() + interval "
                "'170 s'"
            ),
            "sessions": f"SELECT count(*) FROM pg_stat_activity WHERE usename = '{USER}'",
        }
        return [
            f"{count} {what} are left"
            for what, query in counts.items()
            if (count := self._ask(query)[0][0])
        ]

    def _ask(self, *texts):
        with psycopg.connect(
            self._server.dsn, autocommit=True, options="-c synchronous_commit=local"
        ) as connection:
            for text in texts:
                cursor = connection.execute(text)
            return cursor.fetchall() if cursor.description else None


class RedisTroubles(ServerTroubles):
    names = (
        "stopped",
        "restarted",
        "killed",
        "cut",
        "silent",
        "slow",
        "no_replicas",
        "no_connections",
        "no_memory",
        "failed_over",
    )

    def __init__(self, **how):
        super().__init__(RedisServer(), **how)
        self.recipe = (
            "RedisStore",
            (self._server.url.replace(str(self._server.port), str(self._line.port)),),
            {"prefix": "storm:"},
        )

    def _follower(self, port):
        return RedisReplica(port).start()

    def failed_over(self, on):
        """A replica that has everything takes over.

        For a while, clients still reach the former primary, which lives on as a replica.
        """
        if on:
            self._next = self._follower(self._server.port)
            hand_over(self._server, self._next)
        else:
            self._replace()

    def no_replicas(self, on):
        self._set("min-replicas-to-write", int(on))

    def no_memory(self, on):
        self._set("maxmemory", int(on))

    def no_connections(self, on):
        if on:
            self._set("maxclients", 1)
            self._line.cut()
        else:
            self._set("maxclients", 1000)

    def begin(self, name):
        # The connection by which a limit is lifted again: there would be none left for it.
        self._client = redis.Redis.from_url(self._server.url, socket_timeout=20)
        self._client.ping()
        super().begin(name)

    def end(self, name):
        super().end(name)
        self._client.close()

    def _set(self, name, value):
        self._client.config_set(name, value)

    def left(self):
        self._pruned(self.recipe)
        with redis.Redis.from_url(self._server.url) as client:
            found = {
                "owners": len(list(client.scan_iter("storm:\0o:*"))),
                "names of owners": sum(
                    not client.exists(b"storm:\0o:" + owner)
                    for owner in client.zrange("storm:\0owners", 0, -1)
                ),
                "claims with an owner": sum(
                    bool(client.hget(key, "owner")) for key in client.scan_iter("storm:\0c:*")
                ),
                "sessions": len(client.client_list(_type="normal")) - 1,
            }
        return [f"{count} {what} are left" for what, count in found.items() if count]


class SQLiteTroubles(Troubles):
    names = ("locked", "read_for_long", "full")

    def __init__(self, folder):
        self._path = Path(folder) / "storm.db"
        self.recipe = "SQLiteStore", (str(self._path),), {}
        self._holder = None

    def locked(self, on):
        """Another program has begun a transaction that writes."""
        self._hold("BEGIN IMMEDIATE", on)

    def read_for_long(self, on):
        """Another program reads in one transaction: what is written ahead cannot be moved into the
        file.
        """
        self._hold("BEGIN; SELECT count(*) FROM items", on)

    def full(self, on):
        """There is no room for a file of more than its present size: in each process that is told
        so.
        """
        flag = self._path.with_name("full")
        flag.touch() if on else flag.unlink(missing_ok=True)

    def _hold(self, script, on):
        if on:
            self._ended = threading.Event()
            self._holder = threading.Thread(target=self._hold_here, args=(script, self._ended))
            self._holder.start()
        elif self._holder is not None:
            self._ended.set()
            self._holder.join()

    def _hold_here(self, script, ended):
        with (
            contextlib.closing(
                sqlite3.connect(self._path, timeout=10, isolation_level=None)
            ) as connection,
            contextlib.suppress(sqlite3.OperationalError),
        ):
            for text in script.split(";"):
                connection.execute(text).fetchall()
            ended.wait()
            connection.execute("ROLLBACK")

    def left(self):
        self._pruned(self.recipe)
        found = {
            f"the file {path.name}": 1
            for path in self._path.parent.glob(f"{self._path.name}*")
            if path != self._path
        }
        with contextlib.closing(sqlite3.connect(self._path)) as connection:
            found["owners"] = connection.execute("SELECT count(*) FROM owners").fetchone()[0]
            found["claims with an owner"] = connection.execute(
                "SELECT count(*) FROM claims WHERE owner <> x''"
            ).fetchone()[0]
            if (check := connection.execute("PRAGMA integrity_check").fetchall()) != [("ok",)]:
                found[f"{check[:3]} as its integrity"] = 1
        return [f"{count} {what} are left" for what, count in found.items() if count]


def troubles_of(kind, folder, *, loses=False):
    if kind == "sqlite":
        return SQLiteTroubles(folder)
    return {"redis": RedisTroubles, "postgres": PostgresTroubles}[kind](loses=loses)
