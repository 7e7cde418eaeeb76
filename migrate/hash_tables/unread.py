"""Dumps that are recognised and not read: nothing describes their layout but the code of a version.

PERSIA   s0/replica_0_shard_0.emb   linked lists of entries, as Rust's crate speedy writes them
XDL      <table>^0                  slicer, hash items and tensors of a part of a table
"""

from __future__ import annotations

import glob
import os

from semisync.common.errors import BadInput

_DUMPS = {
    "PERSIA": ("replica_*_shard_*.emb", "s*/replica_*_shard_*.emb"),
    "XDL": ("*^[0-9]", "*^[0-9][0-9]", "*^[0-9][0-9][0-9]"),
}


def refuse_unread(directory: str) -> None:
    """BadInput where `directory` holds a dump that has no reader."""
    for server, patterns in _DUMPS.items():
        for pattern in patterns:
            found = sorted(glob.glob(os.path.join(glob.escape(directory), pattern)))
            if found:
                raise BadInput(
                    f"{found[0]} looks like a dump of {server}'s servers, whose layout is nowhere "
                    "described and is not read; load it there and save its ids and rows as tensors "
                    "NAME-keys and NAME-values of a TensorFlow checkpoint"
                )
