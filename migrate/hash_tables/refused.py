"""Dumps that are recognised and refused: only the code of one version describes their layout.

PERSIA   s0/replica_0_shard_0.emb   linked lists of entries, as Rust's crate speedy writes them
XDL      <table>^0                  slicer, hash items and tensors of a part of a table
"""

from __future__ import annotations

import glob
import os

from migrate.hash_tables.files import Types
from semisync.common.errors import BadInput

_DUMPS = {
    "PERSIA": ("replica_*_shard_*.emb", "s*/replica_*_shard_*.emb"),
    "XDL": ("*^[0-9]", "*^[0-9][0-9]", "*^[0-9][0-9][0-9]"),
}


def refuse_dumps(path: str, types: Types) -> None:
    """Raises BadInput if the directory `path` holds a dump that has no reader."""
    for server, patterns in _DUMPS.items():
        for pattern in patterns if os.path.isdir(path) else ():
            files = sorted(glob.glob(os.path.join(glob.escape(path), pattern)))
            if files:
                raise BadInput(
                    f"{files[0]} looks like a dump of {server}'s servers, whose layout is not "
                    "documented and cannot be read; give a plug-in that reads it with --plugin "
                    "(docs/servers.md), or load it there and save its ids and rows as tensors "
                    "NAME-keys and NAME-values of a TensorFlow checkpoint"
                )
