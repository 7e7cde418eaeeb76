"""Paths that stand in files: whoever wrote the file chose them, and not the user.

A name of a file beside another leads into the folder (`inside`). A whole path leads to this
machine's own files, or to the server that the user named himself (`reachable`): no file makes a
command ask another server, with the user's credentials.
"""

from __future__ import annotations

from typing import Any, Optional

from migrate.storage.folders import joined
from migrate.storage.remote import is_remote
from semisync.common.errors import BadInput


def inside(folder: str, name: Any, where: str) -> str:
    """The path of a file in `folder`, or below it, by the name that the file `where` gives.

    Raises:
        BadInput: the name leads elsewhere.
    """
    plain = isinstance(name, str) and name and "\0" not in name and not is_remote(name)
    if plain and is_remote(folder):
        plain = "::" not in name  # by which fsspec would go on from one file system to another
    if not plain or name.startswith("/") or ".." in name.split("/"):
        raise BadInput(f"{where} names the file {name!r:.200}; expected one in {folder}")
    return joined(folder, name)


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
