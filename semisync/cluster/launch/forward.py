"""An address here that leads to a worker wherever it is now.

A TensorFlow server learns the addresses of all processes when it starts, and a parameter server
fetches gradients from the workers. So a worker that was absent when it started, or that may move,
gets an address on the parameter server's own machine, where its launcher passes every connection
on. Bytes are passed on as they come; when one side ends the connection, so does the other.
"""

import contextlib
import selectors
import socket
import threading
import time

CHUNK = 1 << 18  # bytes
WAIT_FOR_WORKER = 20.0  # seconds that a new connection waits; gRPC gives up and tries again
CONNECT_WITHIN = 5.0  # seconds
LOOK_EVERY = 0.2  # seconds


class Forwards:
    """Listens on the loopback interface, at one port per process that is reached this way.

    Args:
        target: a function from a name to HOST:PORT, or to None while it is away.
    """

    def __init__(self, target):
        self._target = target
        self._listeners = {}
        self._selector = selectors.DefaultSelector()
        self._wake, self._woken = socket.socketpair()
        self._selector.register(self._woken, selectors.EVENT_READ)
        self._open = True
        self._thread = threading.Thread(target=self._accept, name="semisync-forward", daemon=True)
        self._thread.start()

    @property
    def names(self):
        """The names that have an address here, a list."""
        return list(self._listeners)

    def address(self, name):
        """The address that leads to `name`, HOST:PORT; always the same."""
        if name not in self._listeners:
            listener = self._listeners[name] = socket.socket()
            listener.bind(("127.0.0.1", 0))
            listener.listen(16)
            listener.setblocking(False)
            self._selector.register(listener, selectors.EVENT_READ, name)
        return "127.0.0.1:{}".format(self._listeners[name].getsockname()[1])

    def close(self):
        """Takes no more connections."""
        if not self._open:
            return
        self._open = False
        self._wake.send(b".")
        self._thread.join()
        self._selector.close()
        for one in (self._wake, self._woken, *self._listeners.values()):
            one.close()

    def _accept(self):
        while self._open:
            for name in [key.data for key, _ in self._selector.select()]:
                if name is None:
                    continue  # it is time to close
                try:
                    near, _ = self._listeners[name].accept()
                except OSError:  # too many open files, or the other has given up
                    time.sleep(LOOK_EVERY)
                    continue
                threading.Thread(target=self._serve, args=(near, name), daemon=True).start()

    def _serve(self, near, name):
        far = self._connected(name)
        if far is None:
            near.close()
            return
        for one in (near, far):  # as gRPC does with its own: small messages are not held back
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        back = threading.Thread(target=_pass_on, args=(far, near), daemon=True)
        back.start()
        _pass_on(near, far)
        back.join()
        near.close()
        far.close()

    def _connected(self, name):
        deadline = time.monotonic() + WAIT_FOR_WORKER
        while self._open and time.monotonic() < deadline:
            target = self._target(name)
            if target is not None:
                host, _, port = target.rpartition(":")
                try:
                    far = socket.create_connection((host.strip("[]"), int(port)), CONNECT_WITHIN)
                except OSError:
                    return None
                far.settimeout(None)
                return far
            time.sleep(LOOK_EVERY)
        return None


def _pass_on(source, sink):
    """Passes bytes on until either side ends; then both directions end."""
    buffer = memoryview(bytearray(CHUNK))
    try:
        while True:
            size = source.recv_into(buffer)
            if not size:
                break
            sink.sendall(buffer[:size])
    except OSError:
        pass  # a side was reset: the other is closed below
    for one in (source, sink):
        with contextlib.suppress(OSError):  # it is closed
            one.shutdown(socket.SHUT_RDWR)
