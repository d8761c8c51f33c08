"""A line between a client and a server that can lose an answer: the server has done what it was asked, and the client does not hear of it."""

import contextlib
import socket
import threading


class LossyLine:
    """Listens on `port`, and passes on what comes to a port behind it."""

    def __init__(self, behind):
        self._behind = behind
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._words = None
        self._times = 0
        self.lost = 0
        self._threads = []
        self._open = []
        self._start(self._accept)

    def lose_answer_to(self, words, times=1):
        """The next time that these bytes are sent: pass them on, and end the connection instead of passing on the answer."""
        self._words, self._times = words, times

    def close(self):
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
                server = socket.create_connection(("127.0.0.1", self._behind))
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
                server.sendall(data)
        _end(client, server)

    def _answer(self, client, server, mute):
        with contextlib.suppress(OSError):
            while data := server.recv(1 << 16):
                if mute.is_set():
                    self.lost += 1
                    break
                client.sendall(data)
        _end(client, server)


def _end(*ends):
    for end in ends:
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
        end.close()
