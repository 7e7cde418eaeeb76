"""A web server that answers ranges, as every object store does and http.server does not."""

import contextlib
import http.server
import pathlib
import re
import threading


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_HEAD(self):
        self._answer(body=False)

    def do_GET(self):
        self._answer(body=True)

    def _answer(self, body):
        path = self.server.folder / self.path.lstrip("/")
        self.server.requests.append((self.command, self.path, self.headers.get("Range")))
        if not path.is_file():
            self.send_error(404)
            return
        data, size = path.read_bytes(), path.stat().st_size
        asked = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        if asked:
            first, last = int(asked[1]), min(int(asked[2] or size - 1), size - 1)
            data = data[first : last + 1]
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {first}-{last}/{size}")
        else:
            self.send_response(200)
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("ETag", f'"{path.stat().st_mtime_ns}-{size}"')
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if body:
            self.wfile.write(data)

    def log_message(self, *_):
        """Nothing on stderr."""


@contextlib.contextmanager
def serving(folder):
    """Yields (URL of `folder`, the requests so far as (method, path, range))."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.folder, server.requests, server.daemon_threads = pathlib.Path(folder), [], True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", server.requests
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
