"""Whole paths that stand in files: whoever wrote the file chose them, and not the user.

They lead to this machine's own files, or to the server that the user named himself: no file makes a
command ask another one, with the user's credentials.
"""

from __future__ import annotations

from typing import Optional

from semisync.storage.remote import is_remote


def reachable(path: str, *given: str) -> bool:
    """Whether a whole path from a file may be followed, where the user named `given` himself."""
    if not is_remote(path):
        return True
    server = _server(path)
    return server is not None and server in map(_server, given)


def _server(path: str) -> Optional[str]:
    """Scheme and server, or bucket, of a URL; None of other paths, and of chains of URLs."""
    scheme, mark, rest = path.partition("://")
    return None if not mark or "::" in path else f"{scheme}://{rest.partition('/')[0]}"
