"""A PostgreSQL behind pgbouncer in its mode "transaction", which shares connections: left out where
pgbouncer is not installed.
"""

import asyncio
import contextlib
import shutil
import subprocess
import time

import psycopg
import pytest

from offbook.runtime import PostgresStore, StoreError
from tests.programs.servers import PASSWORD, PostgresServer, free_port

pytestmark = pytest.mark.skipif(
    shutil.which("pgbouncer", path="/usr/sbin:/usr/bin:/usr/local/bin") is None,
    reason="pgbouncer is not installed",
)


class Pooler:
    """pgbouncer with a few connections to that server."""

    def __init__(self, server, folder):
        self.port = free_port()
        (folder / "users").write_text(f'"{server.USER}" "{PASSWORD}"\n')
        settings = {
            "listen_addr": "127.0.0.1",
            "listen_port": self.port,
            "unix_socket_dir": "",
            "auth_type": "plain",
            "auth_file": folder / "users",
            "pool_mode": "transaction",
            "default_pool_size": 3,
            "server_login_retry": 0.2,
            "admin_users": server.USER,
        }
        lines = "".join(f"{name} = {value}\n" for name, value in settings.items())
        database = (
            f"host=127.0.0.1 port={server.port} dbname=postgres user={server.USER} "
            f"password={PASSWORD}"
        )
        (folder / "settings").write_text(
            f"[databases]\npostgres = {database}\n[pgbouncer]\n{lines}"
        )
        if server.account is not None:  # it does not run as root
            shutil.chown(folder, server.account.pw_uid, server.account.pw_gid)
        with (folder / "log").open("wb") as log:
            command = [
                shutil.which("pgbouncer", path="/usr/sbin:/usr/bin:/usr/local/bin"),
                str(folder / "settings"),
            ]
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, **server.identity()
            )
        self.dsn = (
            f"host=127.0.0.1 port={self.port} user={server.USER} password={PASSWORD} "
            "dbname=postgres sslmode=disable gssencmode=disable"
        )
        deadline = time.monotonic() + 20
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.close()
                raise RuntimeError((folder / "log").read_text())
            time.sleep(0.02)

    def _answers(self):
        with contextlib.suppress(psycopg.OperationalError), psycopg.connect(self.dsn):
            return True
        return False

    def close(self):
        self._process.kill()
        self._process.wait()


@pytest.fixture
def pooler():
    server = PostgresServer().start()
    folder = server.folder / "pooler"
    folder.mkdir()
    server.folder.chmod(0o755)
    pooler = Pooler(server, folder)
    pooler.server = server
    yield pooler
    pooler.close()
    server.remove()


def test_a_row_that_is_locked_fails_that_operation_alone(run, pooler):
    """The pooler keeps no setting of the session, `lock_timeout` for one: it goes with each
    batch.
    """

    async def main():
        async with PostgresStore(pooler.dsn) as store:
            await store.append("locked", [b"1"])
            with psycopg.connect(pooler.server.dsn) as other:
                other.execute("SELECT FROM offbook_entries FOR UPDATE")
                started = time.monotonic()
                locked, free, read = await asyncio.gather(
                    store.append("locked", [b"2"]),
                    store.append("free", [b"1"]),
                    store.read("locked"),
                    return_exceptions=True,
                )
                # The server would be given up after ten seconds.
                assert time.monotonic() - started < 9
                assert isinstance(locked, StoreError)
                assert "lock timeout" in str(locked)
                assert (free, read) == (1, [b"1"])
            assert await store.append("locked", [b"2"]) == 2

    run(main())


def test_what_many_ask_through_few_connections_is_done_once(run, pooler):
    async def main():
        async with PostgresStore(pooler.dsn) as store, PostgresStore(pooler.dsn) as other:
            await asyncio.gather(
                *(one.append("journal", [b"x"]) for one in (store, other) for _ in range(200)),
                other.keys(),
                store.orphans(),
                other.prune(),
            )
            assert len(await other.read("journal")) == 400
            await store.keep_alive("me", 60, first=True)
            claim = await store.claim("run", "me")
            assert claim is not None
            assert await other.holder("run") == "me"
            pooler.server.stop()
            asked = asyncio.gather(store.append("journal", [b"y"]), other.get("none"))
            await asyncio.to_thread(pooler.server.start)
            assert await asked == [401, None]

    run(main())
