"""The file `checkpoint`, which names the latest checkpoint of a directory.

It is a CheckpointState as text; a prefix without a directory is one of the file's own.
Source: tensorflow/python/training/checkpoint_state.proto
"""

from __future__ import annotations

import os

from migrate.checkpoint.paths import STATE
from semisync.common.files import write_text


def write_state(prefix: str) -> None:
    """Names `prefix` as the latest checkpoint, and as the only one that is kept."""
    directory, name = os.path.split(prefix)
    quoted = "".join(_escaped(byte) for byte in os.fsencode(name))
    lines = [f'{field}: "{quoted}"\n' for field in _FIELDS]
    write_text(os.path.join(directory, STATE), "".join(lines))


_FIELDS = ("model_checkpoint_path", "all_model_checkpoint_paths")


def _escaped(byte: int) -> str:
    """As protobuf's text format has it."""
    character = chr(byte)
    if character in '"\\':
        return "\\" + character
    return character if 0x20 <= byte < 0x7F else f"\\{byte:03o}"
