"""SHA-256 of the files of a folder that several processes write: a training's checkpoint.

    FOLDER/digests.json      {file: SHA-256} of all
    FOLDER/digests.R.json    the same of process R's files, until they are joined

1. Each process reads back its files, and writes its part.
2. One joins the parts, before it writes the file that makes the folder whole.
3. A reader compares first; several processes divide the files among them.
4. A folder without digests is an earlier version's, and read as it is.
"""

from __future__ import annotations

import hashlib
import os
from typing import Dict, Iterable, Optional

from semisync.common import json_text
from semisync.common.errors import BadInput
from semisync.common.files import write_json

FILE = "digests.json"
_BLOCK = 1 << 20


def write_part(folder: str, names: Iterable[str], process: int) -> None:
    """Writes the digests of the files that a process wrote.

    Args:
        names: of the files, relative to the folder.
    """
    found = {name: digest(os.path.join(folder, name)) for name in names}
    write_json(_part(folder, process), found)


def join_parts(folder: str, processes: int, more: Dict[str, str]) -> None:
    """Joins the parts of all processes.

    Args:
        more: digests, by their final names, of files that are not renamed yet.
    """
    parts = [_part(folder, process) for process in range(processes)]
    found = {name: value for part in parts for name, value in json_text.read(part).items()}
    write_json(os.path.join(folder, FILE), {**found, **more})
    for part in parts:
        os.remove(part)


def damage(folder: str, process: int = 0, processes: int = 1) -> Optional[str]:
    """The first damage since the folder was written, in a sentence; None if there is none.

    Args:
        process, processes: which share of the files is compared.
    """
    path = os.path.join(folder, FILE)
    if not os.path.exists(path):
        return None
    try:
        found = json_text.read(path)
        for name in sorted(found)[process::processes]:
            if digest(os.path.join(folder, name)) != found[name]:
                return f"{folder} is damaged: {name} is not as it was written, its SHA-256 differs"
    # A file is gone, or digests.json is no JSON or no mapping of names.
    except (OSError, ValueError, TypeError) as error:
        return f"{folder} is damaged: {error}"
    return None


def check(folder: str) -> None:
    """Raises BadInput if a file is not as it was written."""
    found = damage(folder)
    if found is not None:
        raise BadInput(found)


def digest(path: str) -> str:
    """The SHA-256 of a file, in hexadecimal."""
    found, block = hashlib.sha256(), memoryview(bytearray(_BLOCK))
    with open(path, "rb", buffering=0) as file:
        while True:
            count = file.readinto(block)
            if not count:
                return found.hexdigest()
            found.update(block[:count])


def _part(folder: str, process: int) -> str:
    return os.path.join(folder, f"digests.{process}.json")
