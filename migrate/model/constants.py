"""The constants of a model: literals in its source, or files beside it if they are larger."""

from __future__ import annotations

import hashlib
import os
from typing import Dict, Set, Tuple

import numpy

from migrate.graph.tensors import is_spread
from migrate.model.ops.values import STRINGS, TENSOR, Value, literal, torch_type
from migrate.model.source.names import Names, local_name
from semisync.common.budget import Budget

_MOST_SPREAD = 1 << 28  # bytes of the constants that repeat one value in the file
_WRITTEN = 16  # bytes that a byte of a repeated constant may take as a literal in the source
_LITERAL = 16  # values of a constant that is written into the source


class Constants:
    """The constants of one model.

    arrays  attribute of the module -> a constant that the source may use
    large   name in the files -> array, for those that are not literals
    assets  name in the files -> path of a text file
    """

    def __init__(self, names: Names, path: str = "the graph") -> None:
        self._names = names
        self._spread = Budget(
            _MOST_SPREAD,
            f"{path}: its constants of one value each, which the file has once, have more than "
            f"{_MOST_SPREAD >> 20} MiB as tensors; export a graph that fills them where it runs",
        )
        self.arrays: Dict[str, numpy.ndarray] = {}
        self.large: Dict[str, numpy.ndarray] = {}
        self.assets: Dict[str, str] = {}
        self._known: Dict[Tuple, str] = {}

    def value(self, array: numpy.ndarray, node: str) -> Value:
        """A literal for a scalar, or one attribute for all equal constants."""
        kind, dtype = (STRINGS, "string") if array.dtype == object else (TENSOR, array.dtype.name)
        if not array.ndim:
            return Value(literal(array[()]), kind, dtype, (), array)
        if is_spread(array):
            written = array.dtype.kind != "f"  # such numbers and text may be literals in the source
            self._spread.take(array.nbytes * (_WRITTEN if written else 1))
        # The bytes of an object array are pointers: text is compared by its repr.
        values = array.tobytes() if kind == TENSOR else repr(array.tolist()).encode()
        # A digest, so that the key does not hold the bytes a second time.
        key = (dtype, array.shape, hashlib.sha256(values).digest())
        attribute = self._known.get(key)
        if attribute is None:
            attribute = self._known[key] = self._names.fresh(local_name(node))
        self.arrays[attribute] = array
        return Value("self." + attribute, kind, dtype, array.shape, array)

    def tensors(self) -> Set[str]:
        """The attributes of constants that are not text."""
        return {name for name, array in self.arrays.items() if array.dtype != object}

    def statement(self, attribute: str, moves: bool) -> str:
        """The statement that makes an attribute, in the module's constructor.

        Args:
            moves: with the module to another device, which text does not.
        """
        made = self.expression(self.arrays[attribute], attribute)
        if self.arrays[attribute].dtype == object or not moves:
            return f"self.{attribute} = {made}"
        # Not persistent: the state dict holds variables alone; the source or its files have
        # constants.
        return f"self.register_buffer({attribute!r}, {made}, persistent=False)"

    def expression(self, array: numpy.ndarray, name: str) -> str:
        """A tensor or Strings, in the module's constructor; `name` is that of a file."""
        if array.size > _LITERAL:
            self.large[name] = array
            return f"files.constant({name!r})"
        if array.dtype == object:
            return f"runtime.Strings.of({literal(array)})"
        return f"torch.tensor({literal(array)}, dtype={torch_type(array.dtype.name)})"

    def asset(self, path: str) -> str:
        """The path of a text file, in the module's constructor."""
        return f"files.asset({self.asset_name(path)!r})"

    def asset_name(self, path: str) -> str:
        """The name of a text file among the assets."""
        name = os.path.basename(path)
        number = 1
        while self.assets.get(name, path) != path:
            name = f"{number}_{os.path.basename(path)}"
            number += 1
        self.assets[name] = path
        return name
