"""Reading a directory of safetensors files back, by the safetensors package itself.

That package reads from disk alone; behind a URL `RemoteSafetensors` stands for it.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Dict, Union

import torch

from migrate.checkpoint.tensor_info import rows_of
from migrate.targets.reading.reader import Stored
from migrate.targets.reading.remote_safetensors import NAMES, RemoteSafetensors
from migrate.targets.safetensors import INDEX
from semisync.common import json_text
from semisync.common.errors import BadInput
from semisync.common.extras import extra
from semisync.storage.files import open_regular, read_whole
from semisync.storage.folders import joined
from semisync.storage.remote import Unreachable, is_remote, sizes_below

if TYPE_CHECKING:
    from safetensors import safe_open


class SafetensorsReader:
    """A directory of safetensors files, each tensor whole in one of them."""

    def __init__(self, directory: str) -> None:
        self.tensors: Dict[str, Stored] = {}
        self._paths: Dict[str, str] = {}
        self._remote: Dict[str, RemoteSafetensors] = {}
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
                dtype = NAMES.get(tensor.get_dtype())
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
        """This one: every call opens its file."""
        return self

    def _opened(self, path: str) -> Union[safe_open, RemoteSafetensors]:
        if not is_remote(path):
            return _opened(path)
        if path not in self._remote:
            self._remote[path] = RemoteSafetensors(path)
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
