"""A directory of safetensors files, each tensor whole in one of them.

    model-00001-of-0000N.safetensors   8 bytes: length of the header; the header, JSON:
                                       name -> dtype, shape, data_offsets; the values, row-major
    model.safetensors.index.json       name -> file, where Hugging Face's tools look it up

Any reader of safetensors reads them, and torch's HuggingFaceStorageReader loads them into sharded
modules. A tensor is never divided between files, for then only that reader would put it together;
a new file begins where one would pass `room`.
Source: https://github.com/huggingface/safetensors, "Format".
"""

from __future__ import annotations

import json
import os
from typing import Any, Dict, List, Sequence, Tuple

from migrate.stream.item import Item
from migrate.stream.regions import Frame, Layout, Region
from migrate.targets import INDEXES
from semisync.common.errors import BadInput

INDEX = INDEXES["safetensors"]
_ALIGNMENT = 64  # bytes; the header is padded with blanks so that the values begin aligned

DTYPES = {
    "bool": "BOOL",
    "uint8": "U8",
    "int8": "I8",
    "uint16": "U16",
    "int16": "I16",
    "uint32": "U32",
    "int32": "I32",
    "uint64": "U64",
    "int64": "I64",
    "float16": "F16",
    "bfloat16": "BF16",
    "float32": "F32",
    "float64": "F64",
    "complex64": "C64",
}


def lay_out(items: Sequence[Item], cuts: Sequence[Sequence[Tuple[int, int]]], room: int) -> Layout:
    """Each item whole in a file.

    Args:
        room: bytes of a file, unless one item takes more.

    Raises:
        BadInput: a data type that the format lacks.
    """
    files = _files(items, room)
    layout = Layout({}, [], [], room)
    for number, members in enumerate(files, 1):
        file = _name(number, len(files))
        header: Dict[str, Any] = {"__metadata__": {"format": "pt"}}
        position = 0
        for index in members:
            item = items[index]
            end = position + item.nbytes
            header[item.fqn] = {
                "dtype": _dtype(item),
                "shape": list(item.shape),
                "data_offsets": [position, end],
            }
            position = end
        text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
        text += b" " * (-(8 + len(text)) % _ALIGNMENT)
        layout.frames.append(Frame(file, 0, len(text).to_bytes(8, "little") + text))
        layout.files[file] = 8 + len(text) + position
        for index in members:
            start = 8 + len(text) + header[items[index].fqn]["data_offsets"][0]
            layout.regions.extend(
                Region(index, first, rows, file, start + first * items[index].row_bytes)
                for first, rows in cuts[index]
            )
    return layout


def finish(directory: str, items: Sequence[Item], layout: Layout) -> None:
    """Writes the index."""
    files = _files(items, layout.room)
    where = {
        items[index].fqn: _name(number, len(files))
        for number, members in enumerate(files, 1)
        for index in members
    }
    total = sum(item.nbytes for item in items)
    with open(os.path.join(directory, INDEX), "w", encoding="utf-8") as file:
        json.dump({"metadata": {"total_size": total}, "weight_map": where}, file, indent=1)


def _files(items: Sequence[Item], room: int) -> List[List[int]]:
    """The items of each file. The largest types first, so that all values are aligned."""
    files: List[List[int]] = [[]]
    left = room
    for index, item in enumerate(items):
        if files[-1] and item.nbytes > left:
            files.append([])
            left = room
        files[-1].append(index)
        left -= item.nbytes
    return [sorted(members, key=lambda index: -items[index].itemsize) for members in files]


def _name(number: int, count: int) -> str:
    return f"model-{number:05d}-of-{count:05d}.safetensors"


def _dtype(item: Item) -> str:
    if item.dtype not in DTYPES:
        raise BadInput(
            f"{item.source!r} is {item.dtype}, which safetensors does not support; drop it in a "
            "plan or convert to target dcp"
        )
    return DTYPES[item.dtype]
