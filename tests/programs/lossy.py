"""A line between a client and a server that gets into trouble: it loses an answer, hangs, is cut,
delays what passes, or leads to another server.
"""

import contextlib
import socket
import threading
import time


class LossyLine:
    """Listens on `port`, and passes on what comes to a port behind it."""

    def __init__(self, behind):
        self._behind = behind
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._words = None
        self._times = 0
        self.lost = 0
        self._passes = threading.Event()
        self._passes.set()
        self._delay = 0.0
        self._threads = []
        self._open = []
        self._start(self._accept)

    def lose_answer_to(self, words, times=1):
        """The next time that these bytes are sent: pass them on, and end the connection instead of
        passing on the answer.
        """
        self._words, self._times = words, times

    def hang(self):
        """Pass nothing on, in either direction, but accept connections, as a pooler does that is
        paused.
        """
        self._passes.clear()

    def go_on(self):
        """Pass on what has come meanwhile, and what comes."""
        self._passes.set()

    def delay(self, seconds):
        """Pass on whatever comes so much later."""
        self._delay = seconds

    def cut(self):
        """End all connections."""
        for end in self._open:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def lead_to(self, port):
        """Lead to another server from the next connection on."""
        self._behind = port

    def close(self):
        self._passes.set()
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for end in self._open:
            _end(end)
        for thread in self._threads:
            thread.join(10)

    def _start(self, function, *args):
        thread = threading.Thread(target=function, args=args)
        self._threads.append(thread)
        thread.start()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                client, _address = self._listener.accept()
                try:
                    server = socket.create_connection(("127.0.0.1", self._behind))
                except (
                    OSError
                ):  # there is none, or it resets what comes: the line is there for the next one
                    client.close()
                    continue
                self._open += (client, server)
                mute = threading.Event()
                self._start(self._ask, client, server, mute)
                self._start(self._answer, client, server, mute)

    def _ask(self, client, server, mute):
        with contextlib.suppress(OSError):
            while data := client.recv(1 << 16):
                if self._times and self._words in data:
                    self._times -= 1
                    mute.set()
                self._hold()
                server.sendall(data)
        _end(client, server)

    def _answer(self, client, server, mute):
        with contextlib.suppress(OSError):
            while data := server.recv(1 << 16):
                if mute.is_set():
                    self.lost += 1
                    break
                self._hold()
                client.sendall(data)
        _end(client, server)

    def _hold(self):
        self._passes.wait()
        if self._delay:
            time.sleep(self._delay)


def _end(*ends):
    for end in ends:
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
        end.close()
