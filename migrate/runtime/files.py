"""The files of a model beside its source: large constants and vocabularies.

constants.npz    arrays by name; strings as NAME.data (bytes), NAME.offsets and NAME.shape
assets/          text files
"""

from __future__ import annotations

import os
import shutil
from typing import Any, Dict, Mapping

import numpy
import torch

from semisync.common.errors import BadInput

CONSTANTS, ASSETS = "constants.npz", "assets"


class Files:
    """The files of one model, in the directory of its source."""

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self._arrays = read_arrays(directory)

    def constant(self, name: str) -> Any:
        """A torch tensor, or Strings; raises BadInput if the file does not have it."""
        if name in self._arrays:
            return torch.from_numpy(self._arrays[name])
        parts = [self._arrays.get(f"{name}.{part}") for part in ("data", "offsets", "shape")]
        data, offsets, shape = parts
        if data is None or offsets is None or shape is None:
            raise BadInput(
                f"{os.path.join(self._directory, CONSTANTS)} has no constant {name!r}; convert the "
                "model again"
            )
        from migrate.runtime.strings import Strings  # pyarrow and numba, for text alone

        return Strings(data, offsets, tuple(int(size) for size in shape))

    def asset(self, name: str) -> str:
        """The path of a text file."""
        return os.path.join(self._directory, ASSETS, name)


class InMemory(Files):
    """The files of a model that is not written: its constants in memory, text files in place."""

    def __init__(self, constants: Mapping[str, numpy.ndarray], assets: Mapping[str, str]) -> None:
        self._constants, self._assets = constants, assets

    def constant(self, name: str) -> Any:
        """A torch tensor, or Strings."""
        from migrate.runtime.strings import Strings

        array = self._constants[name]
        return Strings.of(array) if array.dtype == object else torch.tensor(array)

    def asset(self, name: str) -> str:
        """The path of a text file."""
        return self._assets[name]


def has_text(directory: str) -> bool:
    """Whether constants that `write_files` wrote are text."""
    path = os.path.join(directory, CONSTANTS)
    if not os.path.exists(path):
        return False
    with numpy.load(path, allow_pickle=False) as arrays:
        return any(name.endswith(".offsets") for name in arrays)


def read_arrays(directory: str) -> Dict[str, numpy.ndarray]:
    """The arrays in a directory, text in the form of `arrays_of`; raises numpy's errors on
    damage."""
    path = os.path.join(directory, CONSTANTS)
    if not os.path.exists(path):
        return {}
    with numpy.load(path, allow_pickle=False) as arrays:
        return dict(arrays)


def arrays_of(constants: Mapping[str, numpy.ndarray]) -> Dict[str, numpy.ndarray]:
    """Constants as the arrays to write."""
    from migrate.runtime.strings import Strings

    arrays: Dict[str, numpy.ndarray] = {}
    for name, array in constants.items():
        if array.dtype == object:
            strings = Strings.of(array)
            arrays[f"{name}.data"] = strings.data
            arrays[f"{name}.offsets"] = strings.offsets
            arrays[f"{name}.shape"] = numpy.array(array.shape, numpy.int64)
        else:
            arrays[name] = array
    return arrays


def write_files(
    directory: str, constants: Mapping[str, numpy.ndarray], assets: Mapping[str, str]
) -> None:
    """Writes the files that `Files` reads."""
    arrays = arrays_of(constants)
    if arrays:
        numpy.savez_compressed(os.path.join(directory, CONSTANTS), **arrays)  # type: ignore[arg-type]
    for name, path in assets.items():
        os.makedirs(os.path.join(directory, ASSETS), exist_ok=True)
        shutil.copyfile(path, os.path.join(directory, ASSETS, name))
