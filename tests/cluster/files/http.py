"""Requests to a server, one by one."""

import http.client

from semisync.cluster.files.download import bearer


def authority(url):
    return url.partition("://")[2]


def ask(server, path, method="GET", token=None, **headers):
    """(status, headers, body) of one request on a connection of its own.

    Args:
        server: a `FileServer`.
        token: what to show in place of the right one; False: nothing.
        headers: with "_" for "-".
    """
    headers = {name.replace("_", "-"): value for name, value in headers.items()}
    if token is not False:
        headers.setdefault("Authorization", bearer(token or server.token))
    connection = http.client.HTTPConnection(authority(server.url), timeout=20)
    try:
        connection.request(method, path, headers=headers)
        answer = connection.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read()
    finally:
        connection.close()
