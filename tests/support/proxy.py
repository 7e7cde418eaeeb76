"""A TCP proxy whose connections a test cuts."""

import contextlib
import socket
import threading


class Proxy:
    """Passes on what comes to `address`, until `close`.

    Args:
        to: a port of this machine.
    """

    def __init__(self, to):
        self._to, self._open, self._lock = to, set(), threading.Lock()
        self._listener = _server()
        self.address = "localhost:{}".format(self._listener.getsockname()[1])
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                here = self._listener.accept()[0]
            except OSError:
                return
            there = socket.create_connection(("localhost", self._to))
            with self._lock:
                self._open |= {here, there}
            for one, other in ((here, there), (there, here)):
                threading.Thread(target=self._pass_on, args=(one, other), daemon=True).start()

    def _pass_on(self, one, other):
        with contextlib.suppress(OSError):
            for data in iter(lambda: one.recv(1 << 16), b""):
                other.sendall(data)
        self._end(one, other)

    def _end(self, *connections):
        with self._lock:
            self._open -= set(connections)
        for connection in connections:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            connection.close()

    def cut(self):
        """Cuts all connections; returns how many ends there were."""
        with self._lock:
            connections = list(self._open)
        self._end(*connections)
        return len(connections)

    def close(self):
        """Ends."""
        self._listener.close()
        self.cut()


def _server():
    listener = socket.socket()
    listener.bind(("localhost", 0))
    listener.listen(16)
    return listener
