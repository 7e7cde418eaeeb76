"""model.py's names for a conversion's tensors, so that its state dict loads from a DCP:

    dcp.load(model.state_dict(), checkpoint_id=OUT)

1. A table takes the name that it has in the module for its own, and its slots follow it.
2. A dense variable has its name in the module beside TensorFlow's, and each slot of either is
   `optim.state.NAME.SLOT` too, in torch.optim's words. Where the module keeps a tensor as it was
   written, or its first rows, the name refers to the same bytes. Other tensors, such as a kernel
   that is transposed for nn.Linear or the rows of a later part, are written once more, in a file
   of their own.
3. The manifest has the names; `verify` compares the tensors behind them.
"""

from __future__ import annotations

import hashlib
import os
import pickle
from typing import BinaryIO, Dict, Iterator, List, Optional, Sequence, Tuple

import torch
from torch.distributed.checkpoint.filesystem import _StorageInfo
from torch.distributed.checkpoint.metadata import (
    ChunkStorageMetadata,
    Metadata,
    MetadataIndex,
    TensorProperties,
    TensorStorageMetadata,
)

from migrate.manifest.manifest import FILE, Manifest, Renamed, read_manifest
from migrate.manifest.state_names import STEP, owner, table_state
from migrate.model.parameters import Parameter
from migrate.targets import INDEXES
from migrate.targets.reading import open_target
from migrate.targets.reading.dcp_metadata import read_metadata
from semisync.common.errors import BadInput
from semisync.common.files import write_bytes, write_text

_FILE = "__model_0.distcp"


def add_model_names(directory: str, parameters: Sequence[Parameter], beside: str) -> None:
    """Gives a conversion to DCP the names of model.py, which has `parameters`.

    Args:
        directory: of the data.
        beside: the folder of manifest and metadata, where changes are written.
    """
    manifest = read_manifest(beside)
    if manifest.target != "dcp":
        return
    metadata = read_metadata(beside)
    for old, new in _rename_tables(manifest, parameters).items():
        _point(metadata, new, old)
        _forget(metadata, old)
    manifest.renamed = list(_renamed(manifest, parameters))
    _refuse_twice(manifest)
    reader = open_target(directory, manifest.target)
    with open(os.path.join(beside, _FILE), "wb") as file:
        for one in manifest.renamed:
            if one.as_written:
                _point(metadata, one.name, one.fqn, None if one.rows is None else one.rows[1])
                continue
            rows = reader.tensors[one.fqn].shape[0]
            value = one.of(reader.rows(one.fqn, 0, rows)).contiguous()
            start = file.tell()
            _save(value, file)
            _add(metadata, one.name, value, _StorageInfo(_FILE, start, file.tell() - start))
    index = pickle.dumps(metadata)
    manifest.index_sha256 = hashlib.sha256(index).hexdigest()
    write_bytes(os.path.join(beside, INDEXES["dcp"]), index)
    write_text(os.path.join(beside, FILE), manifest.to_json())


def _save(value: torch.Tensor, file: BinaryIO) -> None:
    """Calls torch.save; raises the system's error, as of a full disk, which it hides in its own."""
    try:
        torch.save(value, file)
    except RuntimeError as error:
        if isinstance(error.__context__, OSError):
            raise error.__context__ from None
        raise


def _refuse_twice(manifest: Manifest) -> None:
    fqns = {one.fqn for one in manifest.tensors}
    for one in manifest.renamed:
        if one.name in fqns:
            raise BadInput(
                f"{one.name!r} is what model.py calls {one.fqn!r}, and what the conversion calls "
                "another tensor; rename that with --rename REGEX=NAME"
            )


def _rename_tables(manifest: Manifest, parameters: Sequence[Parameter]) -> Dict[str, str]:
    """Renames tables and their slots, in the manifest, as the module does; returns {old: new}."""
    # Only a parameter that has the whole variable can give the table its name.
    attributes = {one.variable: one.attribute for one in parameters if one.rows is None}
    # Before any name changes: `owner` finds a state's table by the table's name.
    owners = [(one, owner(manifest, one)[0] or one.fqn) for one in manifest.tensors]
    renamed: Dict[str, str] = {}
    for table in manifest.tables:
        weight = table.fqn
        source = next(one.source for one in manifest.tensors if one.fqn == weight)
        if table.ids is not None or source not in attributes:
            continue
        table.fqn = attributes[source]
        for written, of in owners:
            if of == weight:
                new = written.fqn.replace(weight, table.fqn, 1)
                renamed[written.fqn] = written.fqn = new
    return {old: new for old, new in renamed.items() if old != new}


def _renamed(manifest: Manifest, parameters: Sequence[Parameter]) -> Iterator[Renamed]:
    """The tensors that the module calls otherwise, without those that cannot fill it."""
    states: Dict[str, List[Tuple[str, str]]] = {}
    for written in manifest.tensors:
        weight, _, state = owner(manifest, written)
        states.setdefault(weight, []).append((state, written.fqn))
    of_source = {
        one.source: one
        for one in manifest.variables()
        if one.role in ("table", "dense", "scalar") and one.has_values
    }
    counts: Dict[str, List[int]] = {}
    for row in manifest.rows_by_id():
        if row.variable is not None:
            of_source[row.variable] = row.written
            counts[row.written.fqn] = [row.ids]
    for parameter in parameters:
        one = of_source.get(parameter.variable)
        # Rows dealt out by "mod" stand in the order of the ids: a part of them is no range.
        if one is None or (parameter.rows is not None and one.partition_strategy == "mod"):
            continue
        rows = None if parameter.rows is None else list(parameter.rows)
        if counts.get(one.fqn, one.shape[:1]) < one.shape[:1]:
            rows = [0, *counts[one.fqn]]  # the last is that of other ids
        axes = None if parameter.axes is None else list(parameter.axes)
        if parameter.attribute != one.fqn:
            yield Renamed(parameter.attribute, one.fqn, rows, axes)
        for state, fqn in states.get(one.fqn, []):
            name = ".".join(table_state(parameter.attribute, "", state))
            if name != fqn:
                # A step is one number: it has neither rows nor axes.
                whole = state == STEP
                yield Renamed(name, fqn) if whole else Renamed(name, fqn, rows, axes)


def _point(metadata: Metadata, name: str, fqn: str, rows: Optional[int] = None) -> None:
    """Makes `name` refer to the chunks of `fqn`, or to those of its first `rows`."""
    tensor = metadata.state_dict_metadata[fqn]
    assert isinstance(tensor, TensorStorageMetadata)  # as all that a conversion writes
    if rows is not None:
        tensor = TensorStorageMetadata(
            tensor.properties,
            torch.Size([rows, *tensor.size[1:]]),
            [
                ChunkStorageMetadata(
                    chunk.offsets,
                    torch.Size([min(chunk.sizes[0], rows - chunk.offsets[0]), *chunk.sizes[1:]]),
                )
                for chunk in tensor.chunks
                if chunk.offsets[0] < rows
            ],
        )
    metadata.state_dict_metadata[name] = tensor
    metadata.planner_data[name] = (name,)
    for chunk in tensor.chunks:
        place = metadata.storage_data[MetadataIndex(fqn, chunk.offsets)]
        metadata.storage_data[MetadataIndex(name, chunk.offsets)] = place


def _forget(metadata: Metadata, fqn: str) -> None:
    del metadata.planner_data[fqn]
    tensor = metadata.state_dict_metadata.pop(fqn)
    assert isinstance(tensor, TensorStorageMetadata)
    for chunk in tensor.chunks:
        del metadata.storage_data[MetadataIndex(fqn, chunk.offsets)]


def _add(metadata: Metadata, name: str, value: torch.Tensor, place: _StorageInfo) -> None:
    offsets = torch.Size([0] * value.dim())
    metadata.state_dict_metadata[name] = TensorStorageMetadata(
        TensorProperties(dtype=value.dtype),
        value.size(),
        [ChunkStorageMetadata(offsets, value.size())],
    )
    metadata.planner_data[name] = (name,)
    metadata.storage_data[MetadataIndex(name, offsets)] = place
