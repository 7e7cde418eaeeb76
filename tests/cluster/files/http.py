"""Requests to a node, one by one: signed as they should be, or not."""

import http.client

from semisync.cluster.files.signing import Request, signature

KEY = b"a key of sixteen or more bytes"


def authority(url):
    return url.partition("://")[2]


def ask(url, path, method="GET", key=KEY, sign=None, **headers):
    """(status, headers, body) of one request on a connection of its own.

    Args:
        sign: what to sign in place of what is asked, a dict of `Request`'s fields; False: nothing.
        headers: with "_" for "-".
    """
    headers = {name.replace("_", "-"): value for name, value in headers.items()}
    if sign is not False:
        asked = Request(method, authority(url), path, headers.get("Range", ""))
        headers.setdefault("Authorization", signature(key, asked._replace(**(sign or {}))))
    connection = http.client.HTTPConnection(authority(url), timeout=20)
    try:
        connection.request(method, path, headers=headers)
        answer = connection.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read()
    finally:
        connection.close()
