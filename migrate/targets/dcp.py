"""A torch Distributed Checkpoint (DCP), written in chunks and without a process group.

    .metadata       a pickled torch.distributed.checkpoint.metadata.Metadata:
                    state_dict_metadata  name -> type, size, boxes (offsets, sizes) of the chunks
                    storage_data         (name, offset of a chunk) -> file, position, length
                    planner_data         name -> its path in the nested state dict
    __0_0.distcp    one `torch.save` of a tensor a chunk, one after the other

torch's own writer keeps every tensor until the file ends (pytorch#195982), so that it needs as
much memory as the checkpoint; this one needs one chunk. A reader loads whole chunks, which is why
they are kept small. Source: torch/distributed/checkpoint/{metadata,filesystem}.py, torch 2.13.
"""

from __future__ import annotations

import os
import pickle
from typing import Any, BinaryIO, Dict, Iterable, List, Sequence, Tuple

import numpy
import torch
from torch.distributed.checkpoint.filesystem import CURRENT_DCP_VERSION, _StorageInfo
from torch.distributed.checkpoint.metadata import (
    ChunkStorageMetadata,
    Metadata,
    MetadataIndex,
    StorageMeta,
    TensorProperties,
    TensorStorageMetadata,
)

from migrate.sources.dtypes import BFLOAT16, BY_NAME

_DATA = "__0_0.distcp"
_METADATA = ".metadata"


class DcpWriter:
    """Writes tensors one after the other into `directory`; `close` makes it a checkpoint."""

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self._file: BinaryIO = open(os.path.join(directory, _DATA), "xb")  # noqa: SIM115
        self._tensors: Dict[str, TensorStorageMetadata] = {}
        self._storage: Dict[MetadataIndex, _StorageInfo] = {}
        self._paths: Dict[str, Tuple[str, ...]] = {}

    def write(
        self,
        fqn: str,
        path: Sequence[str],
        dtype: str,
        shape: Sequence[int],
        chunks: Iterable[Tuple[int, numpy.ndarray]],
    ) -> None:
        """Writes one tensor.

        fqn: its name; path: where it stands in a nested state dict. dtype: TensorFlow's name.
        chunks: (first row, rows) from front to back; a scalar is one row.
        """
        boxes: List[ChunkStorageMetadata] = []
        for first, values in chunks:
            tensor = as_tensor(values).reshape([len(values), *shape[1:]] if shape else [])
            offsets = torch.Size([first] + [0] * (len(shape) - 1) if shape else [])
            start = self._file.tell()
            torch.save(tensor, self._file)
            length = self._file.tell() - start
            boxes.append(ChunkStorageMetadata(offsets, tensor.size()))
            self._storage[MetadataIndex(fqn, offsets)] = _StorageInfo(_DATA, start, length)
        properties = TensorProperties(dtype=getattr(torch, BY_NAME[dtype].torch or ""))
        self._tensors[fqn] = TensorStorageMetadata(properties, torch.Size(shape), boxes)
        self._paths[fqn] = tuple(path)

    def close(self) -> None:
        """Ends the data file and writes the metadata."""
        self._file.close()
        metadata = Metadata(
            state_dict_metadata=dict(self._tensors),
            planner_data=self._paths,
            storage_data=self._storage,
            storage_meta=StorageMeta(),
            version=CURRENT_DCP_VERSION,
        )
        with open(os.path.join(self._directory, _METADATA), "xb") as file:
            pickle.dump(metadata, file)

    def __enter__(self) -> DcpWriter:
        return self

    def __exit__(self, kind: Any, *_: object) -> None:
        if kind is None:
            self.close()
        else:
            self._file.close()


def as_tensor(values: numpy.ndarray) -> torch.Tensor:
    """`values` as a tensor on the same memory; BFLOAT16 becomes torch.bfloat16."""
    if values.dtype == BFLOAT16:
        return torch.from_numpy(values.view(numpy.int16)).view(torch.bfloat16)
    return torch.from_numpy(values)
