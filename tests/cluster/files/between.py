"""Somebody on the way between a machine and a node, who answers as they like."""

import http.client
import http.server
import threading
from typing import Callable, List, NamedTuple

from semisync.cluster import files

HIDDEN = "127.0.0.2"  # where the node really listens


class Answered(NamedTuple):
    """An answer as it is sent."""

    status: int
    headers: dict
    body: bytes


class Between:
    """Listens at a node's URL in its place, and asks it; use it as a context manager.

    Attributes:
        forge: a function from the node's answer to the one that is passed on.
        genuine: what the node has answered so far.
        node: a function that makes the `Node`.
    """

    def __init__(self) -> None:
        self.forge: Callable[[Answered], Answered] = lambda answer: answer
        self.genuine: List[Answered] = []
        between = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                answer = between.ask(self.path, dict(self.headers))
                between.genuine.append(answer)
                status, headers, body = between.forge(answer)
                self.send_response(status)
                for name, value in dict(headers, **{"Content-Length": str(len(body))}).items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self._server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()

    def node(self, key: bytes, **options) -> files.Node:
        """A node that believes to be the one at our address."""
        port = self._server.server_port
        return files.Node(key, host="127.0.0.1", bind=HIDDEN, port=port, **options)

    def ask(self, path: str, headers: dict) -> Answered:
        """What the node answers."""
        connection = http.client.HTTPConnection(HIDDEN, self._server.server_port, timeout=20)
        try:
            connection.request("GET", path, headers=headers)
            answer = connection.getresponse()
            return Answered(answer.status, dict(answer.getheaders()), answer.read())
        finally:
            connection.close()

    def __enter__(self) -> "Between":
        return self

    def __exit__(self, *_) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
