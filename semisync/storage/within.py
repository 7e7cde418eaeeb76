"""Files that a stranger's file names, as a graph its vocabularies, or that a stranger's folder has.

Whoever made the one may have named any file of the reader's machine, or linked to it. A name is
followed only in the folder of the file that has it, and below: no absolute path elsewhere, no "..",
no URL, no link that leads out. Data files of a DCP alone may be links, as in caches of model hubs.

Whole paths in a file that must have some lead to this machine's own files, or to the server that
the user named (`reachable`): no file makes a command ask another one, with the user's credentials.
"""

from __future__ import annotations

import os
from typing import Any, Optional

from semisync.common.errors import BadInput
from semisync.storage.folders import joined
from semisync.storage.remote import is_remote


def within(folder: str, name: str) -> Optional[str]:
    """The path of the file called `name` in `folder`; None if it does not lie there or below."""
    if _leads_out(folder, name):
        return None
    if is_remote(folder):  # where there are no links
        return None if name.startswith("/") else joined(folder, name)
    path = os.path.join(folder, name)
    home = os.path.join(os.path.realpath(folder), "")  # with a slash: /data2 is not in /data
    return path if os.path.realpath(path).startswith(home) else None


def refuse_link_out(folder: str, name: str) -> None:
    """Raises BadInput if a file in `folder` on disk is a link that leads out of it."""
    if within(folder, name) is None:
        path = os.path.join(folder, name)
        raise BadInput(
            f"{path} is a link to {os.path.realpath(path)}, out of {folder}; put the file itself "
            "there if its content is meant"
        )


def data_file(folder: str, name: Any, where: str) -> str:
    """The path of a file of data that is called `name` from `folder`, which may be a link.

    Args:
        where: the file that names it.

    Raises:
        BadInput: it does not lie there or below.
    """
    if not isinstance(name, str) or not name or name.startswith("/") or _leads_out(folder, name):
        raise BadInput(f"{where} names the file {name!r:.200}; expected one in {folder}")
    return joined(folder, name)


def _leads_out(folder: str, name: str) -> bool:
    chained = is_remote(folder) and "::" in name  # fsspec goes on from one file system to another
    return chained or is_remote(name) or "\0" in name or ".." in name.split("/")


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
