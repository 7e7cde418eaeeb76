"""Reading a directory of safetensors files back, by the safetensors package itself.

That package reads from disk alone; behind a URL `_RemoteSafetensors` stands for it.
"""

from __future__ import annotations

import math
import os
from typing import TYPE_CHECKING, Any, Dict, List, Union

import torch

from migrate.checkpoint.tensor_info import rows_of
from migrate.targets.reading.reader import Stored
from migrate.targets.safetensors import DTYPES, INDEX
from semisync.common import json_text
from semisync.common.errors import BadInput
from semisync.common.extras import extra
from semisync.common.files import LARGEST_TEXT
from semisync.encoding.dtypes import number_type
from semisync.storage.files import open_file, open_regular, read_whole
from semisync.storage.folders import joined
from semisync.storage.remote import Unreachable, is_remote, sizes_below

if TYPE_CHECKING:
    from safetensors import safe_open

_NAMES = {in_header: name for name, in_header in DTYPES.items()}


class SafetensorsReader:
    """A directory of safetensors files, each tensor whole in one of them."""

    def __init__(self, directory: str) -> None:
        self.tensors: Dict[str, Stored] = {}
        self._paths: Dict[str, str] = {}
        self._remote: Dict[str, _RemoteSafetensors] = {}
        names = sizes_below(directory) if is_remote(directory) else os.listdir(directory)
        for name in sorted(names):
            if name.endswith(".safetensors"):
                self._take_in(joined(directory, name))
        files = {fqn: os.path.basename(path) for fqn, path in self._paths.items()}
        if _weight_map(os.path.join(directory, INDEX)) != files:
            raise BadInput(f"{directory}/{INDEX} does not tell which file has which tensor")

    def _take_in(self, path: str) -> None:
        """Shapes and types of the tensors in one file."""
        with self._opened(path) as file:
            for fqn in file.keys():  # noqa: SIM118  it is not a mapping
                tensor = file.get_slice(fqn)
                dtype = _NAMES.get(tensor.get_dtype())
                if dtype is None:
                    raise BadInput(f"{path}: {fqn!r} is of type {tensor.get_dtype()}")
                self.tensors[fqn] = Stored(tuple(tensor.get_shape()), dtype)
                self._paths[fqn] = path

    def rows(self, fqn: str, first: int, count: int) -> torch.Tensor:
        """Rows first..first+count of a tensor."""
        stored = self.tensors[fqn]
        rows = rows_of(stored.shape)
        if first + count > rows:
            raise BadInput(f"{fqn!r} has {rows} rows, not {first + count}")
        # Opened again, and copied, so that no more of the file stays mapped than these rows
        with self._opened(self._paths[fqn]) as file:
            if not stored.shape:
                scalar: torch.Tensor = file.get_tensor(fqn)
                return scalar.reshape(1).clone()
            values: torch.Tensor = file.get_slice(fqn)[first : first + count]
            return values.clone()

    def reopened(self) -> SafetensorsReader:
        """This reader: every call opens its file."""
        return self

    def _opened(self, path: str) -> Union[safe_open, _RemoteSafetensors]:
        if not is_remote(path):
            return _opened(path)
        if path not in self._remote:
            self._remote[path] = _RemoteSafetensors(path)
        return self._remote[path]


def _opened(path: str) -> safe_open:
    """The file at `path`; raises BadInput if it is damaged or no safetensors file."""
    with extra("torch", f"to read {path}"):
        from safetensors import SafetensorError, safe_open
    open_regular(path).close()  # the package would wait for ever at a pipe
    try:
        return safe_open(path, framework="pt")
    except (SafetensorError, OSError) as error:
        raise BadInput(f"{path} is not a safetensors file, or is truncated: {error}") from error


def _weight_map(path: str) -> Any:
    """The index: name -> file; None where there is none."""
    try:
        data = json_text.loads(read_whole(path))
    except Unreachable:
        raise
    except (BadInput, ValueError) as error:
        raise BadInput(f"{path} cannot be read: {error}") from error
    return data.get("weight_map") if isinstance(data, dict) else None


class _RemoteSafetensors:
    """The file at the URL `path`, by the calls of `safetensors.safe_open`, which reads from disk
    alone: it reads the header once, and of a tensor only the rows that are asked for. Raises
    BadInput if the file is damaged or no safetensors file."""

    def __init__(self, path: str) -> None:
        with open_file(path) as file:
            size = int.from_bytes(file.read(0, 8, path), "little")
            if size > LARGEST_TEXT:
                raise BadInput(f"{path} claims a header of {size:,} bytes; it is damaged")
            text = file.read(8, size, f"the header of {path}")
            try:
                header: Dict[str, Any] = json_text.loads(text)
                header.pop("__metadata__", None)
                self._slices = {
                    fqn: _RemoteSlice(
                        path, one["dtype"], one["shape"], 8 + size, *one["data_offsets"]
                    )
                    for fqn, one in header.items()
                }
            except (ValueError, TypeError, KeyError, AttributeError) as error:
                raise BadInput(
                    f"{path} is not a safetensors file, or is damaged: {error}"
                ) from error
            for one in self._slices.values():
                file.check_extent(one.start, one.row_bytes * one.rows, path)

    def __enter__(self) -> _RemoteSafetensors:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing stays open."""

    def keys(self) -> List[str]:
        """The names of the tensors."""
        return list(self._slices)

    def get_slice(self, fqn: str) -> _RemoteSlice:
        """A tensor that is not read yet."""
        return self._slices[fqn]

    def get_tensor(self, fqn: str) -> torch.Tensor:
        """A tensor, read."""
        one = self._slices[fqn]
        return one[0 : one.rows].reshape(one.get_shape())


class _RemoteSlice:
    """A tensor of the file at `path`: bytes start..end of its values, which begin at `base`."""

    def __init__(
        self, path: str, dtype: str, shape: List[int], base: int, start: int, end: int
    ) -> None:
        self._path, self._dtype, self._shape = path, dtype, [int(size) for size in shape]
        self.rows = rows_of(self._shape)
        self.start = base + start
        self.row_bytes = math.prod(self._shape[1:]) * number_type(_NAMES[dtype]).itemsize
        if min(start, *self._shape, 0) < 0 or end - start != self.rows * self.row_bytes:
            raise ValueError(f"{dtype} {shape} does not take bytes {start} to {end}")

    def get_dtype(self) -> str:
        """The data type, by the header's name."""
        return self._dtype

    def get_shape(self) -> List[int]:
        """The tensor's sizes."""
        return self._shape

    def __getitem__(self, rows: slice) -> torch.Tensor:
        shape = (rows.stop - rows.start, *self._shape[1:])
        dtype = getattr(torch, _NAMES[self._dtype])
        size = shape[0] * self.row_bytes
        if not size:  # of which torch makes no tensor
            return torch.empty(shape, dtype=dtype)
        with open_file(self._path) as file:
            data = file.read(self.start + rows.start * self.row_bytes, size, f"rows {rows}")
        return torch.frombuffer(bytearray(data), dtype=dtype).reshape(shape)
