"""A server that follows another one and can take over: a standby of PostgreSQL, a replica of Redis.

With a `LossyLine` between the two, the second one lacks the newest writes when it takes over.
"""

import os
import subprocess
import time

import psycopg
import redis

from tests.programs.servers import FROM_SCRATCH, PASSWORD, PostgresServer, RedisServer


def _until(is_so, what):
    deadline = time.monotonic() + FROM_SCRATCH
    while not is_so():
        if time.monotonic() > deadline:
            msg = f"{what} within {FROM_SCRATCH} s"
            raise RuntimeError(msg)
        time.sleep(0.02)


class RedisReplica(RedisServer):
    """A Redis that follows the one at `port`, until it is promoted or restarted."""

    def __init__(self, port):
        super().__init__()
        self._primary = port  # None once it was started: from then on it is a server as any other

    def start(self):
        """Return once it has everything that the first one had when this was called."""
        super().start()
        port, self._primary = self._primary, None
        if port is not None:
            with redis.Redis.from_url(f"redis://:{PASSWORD}@127.0.0.1:{port}/0") as client:
                # It need not wait for other replicas.
                client.config_set("repl-diskless-sync-delay", 0)
            with redis.Redis.from_url(self.url) as client:
                client.config_set("masterauth", PASSWORD)
                client.replicaof("127.0.0.1", port)
                _until(
                    lambda: client.info("replication")["master_link_status"] == "up",
                    "The replica was not linked",
                )
        return self

    def promote(self):
        with redis.Redis.from_url(self.url) as client:
            client.replicaof("no", "one")


def hand_over(primary, replica):
    """Redis: let the replica take over without a loss. The primary becomes its replica."""
    with redis.Redis.from_url(primary.url) as client:
        client.config_set("masterauth", PASSWORD)
        _until(
            lambda: client.info("replication").get("slave0", {}).get("state") == "online",
            "The replica did not follow",
        )
        client.execute_command("FAILOVER", "TO", "127.0.0.1", replica.port)
        _until(
            lambda: client.info("replication")["role"] == "slave", "The replica has not taken over"
        )


class PostgresStandby(PostgresServer):
    """A PostgreSQL that follows `primary`, whose connections may come through another port."""

    NAME = "follower"

    def __init__(self, primary, port=None):
        super().__init__()
        self._primary = primary
        self._through = primary.port if port is None else port

    def start(self):
        """Return once it follows.

        From then on a commit waits for it, if it is named in `synchronous_standby_names`.
        """
        is_new = not self.data.exists()
        super().start()
        if is_new:
            query = (
                "SELECT 1 FROM pg_stat_replication "
                f"WHERE application_name = '{self.NAME}' AND state = 'streaming'"
            )
            _until(lambda: self._ask(self._primary.dsn, query), "The standby does not follow")
        return self

    def promote(self):
        self._ask(self.dsn, "SELECT pg_promote()")

    def _initialise(self):
        if self.account is not None:
            os.chown(self.folder, self.account.pw_uid, self.account.pw_gid)
        source = (
            f"host=127.0.0.1 port={self._through} user={self.USER} password={PASSWORD} "
            f"application_name={self.NAME} gssencmode=disable"
        )
        command = [
            self.tool("pg_basebackup"),
            "-D",
            self.data,
            "-R",
            "-c",
            "fast",
            "-N",
            "-X",
            "stream",
            "-d",
            source,
        ]
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=100, **self.identity()
        )
        if done.returncode:
            msg = f"pg_basebackup has failed: {done.stdout}{done.stderr}"
            raise RuntimeError(msg)

    @staticmethod
    def _ask(dsn, text):
        with psycopg.connect(
            dsn, autocommit=True, options="-c synchronous_commit=local"
        ) as connection:
            return connection.execute(text).fetchall()
