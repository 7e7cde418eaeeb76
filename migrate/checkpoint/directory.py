"""A directory as the name of a checkpoint: the one that its file `checkpoint` names.

    model_checkpoint_path: "model.ckpt-40000"

1. The Saver writes this CheckpointState as text. Where it has a whole path, a file of that name in
   the directory itself comes first: a directory that was copied names its own checkpoint.
2. Nothing else decides. Where the file is missing, or names what is not there, the message lists
   the checkpoints in the directory.

Source: tensorflow/python/training/checkpoint_state.proto
"""

from __future__ import annotations

import os
import re
from typing import List

from migrate.storage.files import open_file, size_of, v1_tables
from migrate.storage.remote import is_remote
from semisync.common.errors import BadInput

STATE = "checkpoint"

_LATEST = re.compile(rb'^\s*model_checkpoint_path:\s*"((?:[^"\\\n]|\\.)*)"', re.MULTILINE)
_V1_FIRST = re.compile(r"-00000-of-\d{5}$")
_MAX_STATE = 16 << 20  # bytes; one path a checkpoint that is kept
_LISTED = 10  # prefixes that a message names


def checkpoint_prefix(path: str) -> str:
    """The prefix of the checkpoint that `path` names: of a directory of checkpoints its latest
    one, else `path` itself.

    Raises BadInput where the directory has checkpoints, and nothing in it says which is meant.
    """
    path = os.fspath(path)
    if not is_directory_of_checkpoints(path):
        return path
    state = join(path, STATE)
    if size_of(state) is None:
        raise BadInput(f"{path} has no file `{STATE}` that names one; {_choice(path)}")
    named = _latest(state)
    for prefix in (join(path, re.split(r"[/\\]", named)[-1]), named):
        if _is_checkpoint(prefix):
            return prefix
    raise BadInput(f"{state} names {named}, which is not there; {_choice(path)}")


def is_directory_of_checkpoints(path: str) -> bool:
    """Whether `path` is no checkpoint itself, but a directory with some, or with their file
    `checkpoint`."""
    if size_of(path + ".index") is not None:
        return False
    if is_remote(path):
        return size_of(join(path, STATE)) is not None
    return os.path.isdir(path) and (size_of(join(path, STATE)) is not None or bool(_prefixes(path)))


def join(directory: str, name: str) -> str:
    """The path of a file in a directory, or of an object below a URL."""
    return directory.rstrip("/") + "/" + name


def _latest(state: str) -> str:
    with open_file(state) as file:
        if file.size > _MAX_STATE:
            raise BadInput(f"{state} has {file.size} bytes, expected the names of checkpoints")
        found = _LATEST.search(file.read(0, file.size, state))
    if found is None:
        raise BadInput(
            f"{state} has no line 'model_checkpoint_path: \"...\"'; "
            f"{_choice(os.path.dirname(state))}"
        )
    try:  # the text has octal escapes of UTF-8
        return found[1].decode("unicode_escape").encode("latin-1").decode("utf-8")
    except UnicodeError as error:
        raise BadInput(f"{state}: {found[1]!r} is no path in UTF-8") from error


def _is_checkpoint(prefix: str) -> bool:
    return size_of(prefix + ".index") is not None or bool(v1_tables(prefix))


def _prefixes(directory: str) -> List[str]:
    """Names of the checkpoints in a directory: of format V2, and of V1 in several tables."""
    names = sorted(os.listdir(directory))
    found = [name[: -len(".index")] for name in names if name.endswith(".index")]
    first = [_V1_FIRST.sub("", name) for name in names if _V1_FIRST.search(name)]
    return found + [name for name in first if v1_tables(join(directory, name))]


def _choice(directory: str) -> str:
    found = [] if is_remote(directory) else _prefixes(directory)
    if not found:
        return "give the prefix of one checkpoint"
    more = f" and {len(found) - _LISTED} more" if len(found) > _LISTED else ""
    return f"give one of these: {', '.join(join(directory, one) for one in found[:_LISTED])}{more}"
