"""Real servers for tests: Redis and PostgreSQL as this system has them, on loopback, on free ports,
with data in folders that are gone afterwards.

A server that was stopped or killed comes back on the same port, with the same data.
"""

import atexit
import contextlib
import os
import pwd
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

INSTALL = "Run tests/install_servers, which installs what the tests need."
PASSWORD = "not-to-be-shown"
FROM_SCRATCH = 40  # seconds that a server may take until it answers


def free_port():
    """Return a port of loopback that nothing listens on.

    It is below the ports that the system gives to outgoing connections, which could otherwise take
    it before the server does. A node of a Redis cluster also listens 10,000 ports above its own.
    """
    while True:
        port = random.SystemRandom().randrange(12_000, 32_000)
        with contextlib.suppress(OSError), socket.socket() as probe:
            probe.bind(("127.0.0.1", port))
            return port


def program(name, *folders):
    """Where it is, or an error that says what to do."""
    found = shutil.which(
        name, path=os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", *folders])
    )
    if found is None:
        msg = f"{name} is not installed. {INSTALL}"
        raise RuntimeError(msg)
    return found


def _children(process):
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            if int(stat.read_text().rpartition(")")[2].split()[1]) == process:
                found.append(int(stat.parent.name))
    return found


def _copy(folder, to):
    """With what belongs to it: owners, modes, times."""
    subprocess.run(["cp", "-a", str(folder), str(to)], check=True, timeout=100)


class Server:
    """What the two have in common."""

    def __init__(self):
        self.folder = Path(tempfile.mkdtemp(prefix="offbook-server-"))
        self.port = free_port()
        self.process = None

    def start(self):
        """Start it, and wait until it answers. If it runs, nothing happens."""
        if self.process is not None:
            return self
        deadline = time.monotonic() + FROM_SCRATCH
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                self.command(), stdin=subprocess.DEVNULL, stdout=log, stderr=log, **self.identity()
            )
        while not self.answers():
            if self.process.poll() is not None or time.monotonic() > deadline:
                said = (self.folder / "log").read_text()[-2000:]
                self.kill()
                msg = f"{type(self).__name__} does not start. It said:\n{said}"
                raise RuntimeError(msg)
            time.sleep(0.02)
        return self

    def stop(self):
        """End it in an orderly way, and wait for that."""
        self._end(self.orderly)

    def kill(self):
        """End it at once, as the power does."""
        self._end(signal.SIGKILL)

    def pause(self):
        """Let it hang: connections stay, but nothing is answered."""
        self._signal(signal.SIGSTOP)

    def go_on(self):
        self._signal(signal.SIGCONT)

    def _signal(self, number):
        """To it and to the processes that it has started, one for each connection."""
        for process in (self.process.pid, *_children(self.process.pid)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, number)

    def remove(self):
        """End it, and remove its data."""
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def identity(self):
        return {}

    def _end(self, how):
        if self.process is not None:
            self.go_on()
            process, self.process = self.process, None
            process.send_signal(how)
            process.wait(20)


def complaints(errors):
    """What a program has written to its stderr, but for warnings that the servers of the tests can
    lose data: that they may is what makes them quick.
    """
    return "".join(
        line for line in errors.splitlines(keepends=True) if " can lose data: " not in line
    )


class RedisServer(Server):
    """A Redis that keeps everything: what it has answered, it has written to its log."""

    orderly = signal.SIGTERM

    def __init__(self, *options):
        super().__init__()
        self.options = options

    @property
    def url(self):
        return f"redis://:{PASSWORD}@127.0.0.1:{self.port}/0"

    def command(self):
        settings = {
            "bind": "127.0.0.1",
            "port": self.port,
            "dir": self.folder,
            "requirepass": PASSWORD,
            "save": "",
            "daemonize": "no",
            "appendonly": "yes",
            "appendfsync": "no",
            "databases": 1000,
            "repl-diskless-sync-delay": 0,  # for more replicas to come
        }
        flags = [word for name, value in settings.items() for word in (f"--{name}", str(value))]
        return [program("redis-server"), *flags, *self.options]

    def answers(self):
        return self.call("PING").startswith(b"+PONG")

    def call(self, *words):
        """Send one command, and return the beginning of the answer; nothing, if there is none."""
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=5) as connection:
                connection.sendall(f"AUTH {PASSWORD}\r\n".encode())
                connection.recv(100)
                connection.sendall((" ".join(words) + "\r\n").encode())
                return connection.recv(1000)
        except OSError:
            return b""


class PostgresServer(Server):
    """A PostgreSQL that does not wait for the disk.

    It refuses to run as root: there it runs as `postgres`, or as `nobody`.
    """

    orderly = signal.SIGINT  # "fast": connections are ended
    USER = "tester"
    _made = None

    def __init__(self):
        super().__init__()
        accounts = {account.pw_name: account for account in pwd.getpwall()}
        self.account = (
            accounts.get("postgres", accounts.get("nobody")) if os.geteuid() == 0 else None
        )
        self.data = self.folder / "data"

    @property
    def dsn(self):
        return (
            f"host=127.0.0.1 port={self.port} user={self.USER} password={PASSWORD} dbname=postgres"
        )

    def start(self):
        if not self.data.exists():
            self._initialise()
        return super().start()

    def command(self):
        settings = {
            "listen_addresses": "127.0.0.1",
            "port": self.port,
            "unix_socket_directories": "",
            "fsync": "off",
            "synchronous_commit": "off",
            "full_page_writes": "off",
            "shared_buffers": "32MB",
            "max_connections": 60,
            "autovacuum": "off",
            "log_min_messages": "fatal",
        }
        flags = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        return [self.tool("postgres"), "-D", str(self.data), *flags]

    def answers(self):
        ready = [self.tool("pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(self.port)]
        return subprocess.run(ready, check=False, timeout=20).returncode == 0

    def tool(self, name):
        newest = sorted(
            Path("/usr/lib/postgresql").glob("*/bin"),
            key=lambda folder: float(folder.parent.name),
            reverse=True,
        )
        return program(name, *map(str, newest))

    def identity(self):
        if self.account is None:
            return {"cwd": self.folder}
        return {
            "cwd": self.folder,
            "user": self.account.pw_uid,
            "group": self.account.pw_gid,
            "extra_groups": [],
        }

    def _initialise(self):
        """A copy of what the first server of this process has made: that takes a tenth as long."""
        cls = type(self)
        if cls._made is None:
            self._make()
            made = Path(tempfile.mkdtemp(prefix="offbook-server-"))
            atexit.register(shutil.rmtree, made, ignore_errors=True)
            _copy(self.data, made)
            cls._made = made / self.data.name
        else:
            if self.account is not None:
                os.chown(self.folder, self.account.pw_uid, self.account.pw_gid)
            _copy(cls._made, self.folder)

    def _make(self):
        secret = self.folder / "secret"
        secret.write_text(PASSWORD)
        if self.account is not None:
            for path in (self.folder, secret):
                os.chown(path, self.account.pw_uid, self.account.pw_gid)
        command = [
            self.tool("initdb"),
            "-D",
            self.data,
            "-U",
            self.USER,
            "-A",
            "scram-sha-256",
            f"--pwfile={secret}",
            "-E",
            "UTF8",
            "--locale=C",
            "-N",
        ]
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=100, **self.identity()
        )
        if done.returncode:
            msg = f"initdb has failed: {done.stdout}{done.stderr}"
            raise RuntimeError(msg)
