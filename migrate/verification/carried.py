"""A checkpoint with its conversion's values: readers of the values get the written ones.

Names, shapes and partitions are the checkpoint's; every value is the conversion's, in the places
and the type that TensorFlow has it in. Tensors that the conversion lacks are refused by name: the
checkpoint's own value would hide that it was lost.
"""

from __future__ import annotations

from typing import Iterable, Optional

import numpy
import torch

from migrate.checkpoint.checkpoint import Checkpoint
from migrate.checkpoint.partitions import by_partition, row_blocks
from migrate.checkpoint.tensor_info import rows_of
from migrate.hash_tables.whole_tables import with_tables
from migrate.manifest.manifest import Written, read_manifest
from migrate.targets.reading import open_target
from migrate.to_tensorflow.held import as_array
from semisync.common.errors import BadInput
from semisync.encoding.dtypes import BY_NAME


class Lost(BadInput):
    """The conversion lacks a tensor of its checkpoint."""


class Carried(Checkpoint):
    """A checkpoint with the values of its conversion in `directory`.

    Raises:
        BadInput: `directory` is not a conversion, or cannot be read.
    """

    def __init__(self, checkpoint: Checkpoint, directory: str) -> None:
        super().__init__(checkpoint.prefix, checkpoint.stored, checkpoint.store)
        checkpoint = with_tables(checkpoint)
        self.newer, self.made = checkpoint.newer, checkpoint.made
        self._infos = dict(checkpoint)
        self._source, self._directory = checkpoint, directory
        self._manifest = read_manifest(directory)
        self._reader = open_target(directory, self._manifest.target)
        self._written = {one.source: one for one in self._manifest.variables()}
        by_id = {(one.table, one.of): one.written for one in self._manifest.rows_by_id()}
        for name, made in self.made.items():
            if (made.table.name, made.of) in by_id:
                self._written[name] = by_id[made.table.name, made.of]

    def read(self, name: str, rows: Optional[slice] = None) -> numpy.ndarray:
        """Reads as `Checkpoint.read`; raises Lost for what is absent or has other values."""
        info = self[name]
        written = self._found(name)
        if written is None:
            return self._source.read(name, rows)
        values = self._reader.rows(written.fqn, 0, rows_of(info.shape))
        # A table that was cast goes back to the checkpoint's type.
        values = values.to(getattr(torch, str(BY_NAME[info.dtype].torch))).contiguous()
        array = as_array(values).reshape(info.shape)
        if written.partition_strategy == "mod":
            # From the order of the ids to that in which TensorFlow stores the partitions.
            array = array[by_partition(len(array), len(row_blocks(info, name)))]
        return array if rows is None else array[rows]

    def refuse_lost(self, names: Iterable[str]) -> None:
        """Raises Lost if one of these cannot be read."""
        for name in names:
            self._found(name)

    def _found(self, name: str) -> Optional[Written]:
        """The place of a variable; None for text, which stands in files of the model's own."""
        info = self[name]
        if BY_NAME[info.dtype].torch is None:
            return None
        written = self._written.get(name)
        if written is None:
            reason = self._manifest.dropped.get(name, "it is not in its manifest")
            raise Lost(f"{self._directory} lacks {name!r} of {self.prefix}: {reason}")
        if not written.has_values:
            raise Lost(
                f"{self._directory} has only the {written.transform} of {name!r}, from which "
                "training does not continue as in TensorFlow"
            )
        stored = self._reader.tensors.get(written.fqn)
        shape = info.shape
        if name in self.made and self.made[name].of != "ids":
            shape = (shape[0] + 1, *shape[1:])  # the last row is that of other ids
        if stored is None or stored.shape != shape:
            found = "no tensor" if stored is None else f"{list(stored.shape)}"
            raise Lost(
                f"{self._directory} has {found} as {written.fqn!r}, which is {name!r} of "
                f"{self.prefix}, {list(info.shape)}"
            )
        return written
