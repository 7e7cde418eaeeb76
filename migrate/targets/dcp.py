"""A torch Distributed Checkpoint (DCP), laid out without a process group.

    .metadata       a pickled torch.distributed.checkpoint.metadata.Metadata:
                    state_dict_metadata  name -> type, size, boxes (offsets, sizes) of the chunks
                    storage_data         (name, offset of a chunk) -> file, position, length
                    planner_data         name -> its path in the nested state dict
    __0_0.distcp    one `torch.save` per chunk of a tensor, one after the other; a new file,
                    __1_0.distcp and so on, where one would pass `room`

torch's own writer keeps every tensor until the file ends (pytorch#195982), so that it needs as
much memory as the checkpoint. Here `torch.save` makes only the bytes before and after a tensor's
values: without their crc32, which can be switched off, they depend on type and sizes alone. A
reader loads whole chunks, which is why they are kept small.
Source: torch/distributed/checkpoint/{metadata,filesystem}.py, torch/serialization.py, torch 2.13.
"""

from __future__ import annotations

import io
import os
import pickle
import struct
import zipfile
from functools import lru_cache
from typing import Dict, List, Sequence, Tuple

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

from migrate.stream.item import Item
from migrate.stream.regions import Frame, Layout, Region
from migrate.targets import INDEXES


def lay_out(items: Sequence[Item], cuts: Sequence[Sequence[Tuple[int, int]]], room: int) -> Layout:
    """One region per chunk, with a frame before and after it.

    Args:
        cuts: of each item.
        room: bytes of a file.
    """
    layout = Layout({}, [], [], room)
    file, position = "__0_0.distcp", 0
    for index, (item, of_item) in enumerate(zip(items, cuts)):
        for first, rows in of_item:
            shape = (rows, *item.shape[1:]) if item.shape else ()
            head, tail = _frame(item.dtype, shape)
            size = rows * item.row_bytes
            # Without its own frame, by which a file may pass `room`.
            if position and position + size > room:
                file, position = f"__{len(layout.files)}_0.distcp", 0
            start = position + len(head)
            layout.frames.append(Frame(file, position, head))
            layout.frames.append(Frame(file, start + size, tail))
            layout.regions.append(Region(index, first, rows, file, start))
            position = layout.files[file] = start + size + len(tail)
    return layout


def finish(directory: str, items: Sequence[Item], layout: Layout) -> None:
    """Writes `.metadata`."""
    boxes: List[List[ChunkStorageMetadata]] = [[] for _ in items]
    storage: Dict[MetadataIndex, _StorageInfo] = {}
    for region in layout.regions:
        item = items[region.item]
        shape = (region.rows, *item.shape[1:]) if item.shape else ()
        head, tail = _frame(item.dtype, shape)
        offsets = torch.Size([region.first] + [0] * (len(shape) - 1) if shape else [])
        boxes[region.item].append(ChunkStorageMetadata(offsets, torch.Size(shape)))
        storage[MetadataIndex(item.fqn, offsets)] = _StorageInfo(
            region.file,
            region.offset - len(head),
            len(head) + region.rows * item.row_bytes + len(tail),
        )
    metadata = Metadata(
        state_dict_metadata={
            item.fqn: TensorStorageMetadata(
                TensorProperties(dtype=getattr(torch, item.dtype)), torch.Size(item.shape), chunks
            )
            for item, chunks in zip(items, boxes)
        },
        planner_data={item.fqn: item.path for item in items},
        storage_data=storage,
        storage_meta=StorageMeta(),
        version=CURRENT_DCP_VERSION,
    )
    with open(os.path.join(directory, INDEXES["dcp"]), "wb") as file:
        pickle.dump(metadata, file)


# All chunks of a table but the last have one shape.
@lru_cache(maxsize=1024)
def _frame(dtype: str, shape: Tuple[int, ...]) -> Tuple[bytes, bytes]:
    """The bytes that `torch.save` writes before and after a tensor's values, always the same."""
    buffer = io.BytesIO()
    with_crc = torch.serialization.get_crc32_options()
    torch.serialization.set_crc32_options(False)
    try:
        torch.save(torch.empty(shape, dtype=getattr(torch, dtype)), buffer)
    finally:
        torch.serialization.set_crc32_options(with_crc)
    with zipfile.ZipFile(buffer) as archive:
        records = {record.filename.partition("/")[2]: record for record in archive.infolist()}
    data = buffer.getbuffer()
    # The id hashes the crc32s, and without them what stands in memory. No reader uses it.
    identity = _contents(data, records[".data/serialization_id"])
    data[identity] = b"0" * len(data[identity])
    values = _contents(data, records["data/0"])
    return bytes(data[: values.start]), bytes(data[values.stop :])


def _contents(data: memoryview, record: zipfile.ZipInfo) -> slice:
    """The position of the contents of `record` in an archive."""
    # A local header is 30 bytes, the last four of which are the lengths of the name and of more.
    name, more = struct.unpack_from("<HH", data, record.header_offset + 26)
    start = record.header_offset + 30 + name + more
    return slice(start, start + record.file_size)
