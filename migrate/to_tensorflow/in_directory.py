"""The tensors of a checkpoint in a directory that `semisync convert` wrote.

1. A tensor that was copied has the original's bits. Their SHA-256 is checked as they are read.
2. One that was cast goes back to the original's type: the cast's loss stays, and a note
   says so. Rows of static tables that were rounded (fp16, int8) are copied from the original.
3. Means of a row (row-wise Adagrad) and hash tables are copied from the original, too: nothing has
   changed them since.
"""

from __future__ import annotations

import hashlib
from typing import Dict, Iterator, Tuple

import numpy

from migrate.checkpoint.tensor_info import rows_of
from migrate.manifest.manifest import FILE, Manifest, Written, is_intact, read_manifest
from migrate.manifest.transforms import COPY
from migrate.targets.reading import Reader, open_target
from migrate.to_tensorflow.held import BLOCK_BYTES, Held, Side, as_array
from semisync.common.errors import BadInput
from semisync.encoding.dtypes import number_type


def side_of_directory(directory: str) -> Tuple[Side, Manifest]:
    """Tensors of the converted `directory`; raises BadInput unless it is one, as it was written."""
    manifest = intact_manifest(directory)
    reader = open_target(directory, manifest.target)
    held: Dict[str, Held] = {}
    lacking = reasons(manifest)
    for written in manifest.variables():
        if written.source in lacking:
            continue
        _check(written, reader, directory)
        held[written.source] = Held(
            written.dtype,
            tuple(written.shape),
            written.partition_strategy == "mod",
            _reading(reader, written, directory),
        )
    return Side(directory, held, lacking, {}, manifest.scalars, []), manifest


def intact_manifest(directory: str) -> Manifest:
    """The manifest; raises BadInput if it was edited, or the conversion laid an increment over its
    checkpoint."""
    manifest = read_manifest(directory)
    if not is_intact(directory):
        raise BadInput(
            f"{directory}/{FILE} is not as it was written: its SHA-256 differs; convert again"
        )
    if manifest.newer is not None:
        raise BadInput(
            f"{directory} was converted from {manifest.source} with the increment {manifest.newer} "
            "over it, of DeepRec, which does not restore whole checkpoints of this kind; there is "
            "no way back for it"
        )
    return manifest


def reasons(manifest: Manifest) -> Dict[str, str]:
    """Why the original must give some of its tensors."""
    lacking = {name: f"it was left out ({why})" for name, why in manifest.dropped.items()}
    static = {table.fqn: table.static for table in manifest.tables if table.static}
    for written in manifest.variables():
        kind = static.get(written.fqn)
        if kind is not None and written.transform != COPY.name:
            lacking[written.source] = f"its table is static {kind}, with rounded values"
        elif not written.has_values:
            lacking[written.source] = f"only its {written.transform} was written"
    for table in manifest.tables:
        if table.ids is not None:
            why = f"it belongs to the hash table {table.ids.table!r} ({table.ids.kind})"
            lacking.update(dict.fromkeys(table.ids.tensors, why))
    return lacking


def _check(written: Written, reader: Reader, directory: str) -> None:
    stored = reader.tensors.get(written.fqn)
    if stored is None or (list(stored.shape), stored.dtype) != (written.shape, written.dtype):
        raise BadInput(
            f"{directory} has {written.fqn!r} as {stored}, but its {FILE} says {written.dtype} "
            f"{written.shape}; convert again"
        )


def _reading(reader: Reader, written: Written, directory: str):
    return lambda: checked_rows(reader, written, directory)


def checked_rows(reader: Reader, written: Written, directory: str) -> Iterator[numpy.ndarray]:
    """The rows, checked against the SHA-256 of each piece after its last row."""
    row = int(numpy.prod(written.shape[1:])) * number_type(written.dtype).itemsize
    step, expected = max(BLOCK_BYTES // max(row, 1), 1), 0
    for piece in written.pieces:
        digest = hashlib.sha256()
        for first in range(piece.first, piece.first + piece.rows, step):
            count = min(step, piece.first + piece.rows - first)
            rows = as_array(reader.rows(written.fqn, first, count).contiguous())
            digest.update(rows.reshape(-1).view(numpy.uint8).data)
            yield rows
        if piece.first != expected or digest.hexdigest() != piece.sha256:
            raise BadInput(
                f"{directory}: {written.fqn!r}, rows {piece.first} to "
                f"{piece.first + piece.rows - 1}, are not what was written: SHA-256 differs"
            )
        expected += piece.rows
    # A tensor without values was written without pieces.
    if row and expected != rows_of(written.shape):
        raise BadInput(f"{directory}/{FILE} has hashes of {expected} rows of {written.fqn!r}")
