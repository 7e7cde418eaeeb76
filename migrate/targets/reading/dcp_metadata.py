"""`.metadata` of a torch Distributed Checkpoint (DCP), a pickle, read as data alone.

A pickle calls what it names, and may come from anyone. So this is the one place that unpickles:

1. Only the opcodes of plain data and of records are known.
2. A name leads to one of DCP's records, to a type of torch or to one of the few values that records
   hold; any other is refused before anything is called.
3. Callables get numbers and text. A state is given to a record alone: one for a class, or
   for a member of an enumeration, would change it for the rest of the process.
4. Hashed or compared values are text, numbers or a record of them, and no list of chunks counts
   twice, so that the time that a pickle takes grows with its bytes alone.
5. Every file of the DCP lies in its folder, and is a regular file on disk.

Source: torch/distributed/checkpoint/{metadata,filesystem}.py of torch 2.1 to 2.13; Lib/pickle.py
"""

from __future__ import annotations

import io
import os
import pathlib
import pickle
from contextlib import contextmanager
from itertools import chain
from typing import Any, Dict, Iterator, List, Tuple

import torch
from torch.distributed._shard.sharded_tensor import metadata as sharded
from torch.distributed.checkpoint.filesystem import _StorageInfo
from torch.distributed.checkpoint.metadata import (
    _MEM_FORMAT_ENCODING,
    BytesStorageMetadata,
    ChunkStorageMetadata,
    Metadata,
    MetadataIndex,
    StorageMeta,
    TensorProperties,
    TensorStorageMetadata,
)

from migrate.targets import INDEXES
from semisync.common.errors import BadInput, MissingExtra, UsageError
from semisync.common.sentences import words_of
from semisync.storage.files import read_whole
from semisync.storage.folders import joined
from semisync.storage.remote import Unreachable, is_remote
from semisync.storage.within import data_file

# The records, and the types of those of their fields that are hashed, compared or counted on.
_RECORDS: Dict[Any, Dict[str, Any]] = {
    _StorageInfo: {"relative_path": str, "offset": int, "length": int},
    BytesStorageMetadata: {},
    ChunkStorageMetadata: {"offsets": torch.Size, "sizes": torch.Size},
    Metadata: {"state_dict_metadata": dict, "storage_data": dict},
    MetadataIndex: {"fqn": str, "offset": (torch.Size, type(None))},
    StorageMeta: {},
    TensorProperties: {"dtype": torch.dtype},
    TensorStorageMetadata: {"size": torch.Size, "chunks": list},
    sharded.TensorProperties: {"dtype": torch.dtype},  # before torch 2.3
}
_CALLED = (
    _MEM_FORMAT_ENCODING,
    pathlib.PosixPath,
    sharded.MEM_FORMAT_ENCODING,
    torch.Size,
    torch.serialization._get_layout,
)
_NAMES: Dict[Tuple[str, str], Any] = {
    **{("torch", name): one for name, one in vars(torch).items() if isinstance(one, torch.dtype)},
    **{(one.__module__, one.__name__): one for one in (*_RECORDS, *_CALLED)},
    ("pathlib._local", "PosixPath"): pathlib.PosixPath,  # since Python 3.13
}
# Python's unpickler in Python: the one in C lets no subclass see the built objects.
_Pythons: Any = pickle._Unpickler
_OF_PLAIN_DATA = (
    "PROTO FRAME STOP MARK MEMOIZE BINPUT LONG_BINPUT BINGET LONG_BINGET GLOBAL STACK_GLOBAL NONE "
    "NEWTRUE NEWFALSE BININT BININT1 BININT2 LONG1 BINUNICODE SHORT_BINUNICODE EMPTY_TUPLE TUPLE "
    "TUPLE1 TUPLE2 TUPLE3 EMPTY_LIST APPEND APPENDS EMPTY_DICT"
)


def _codes(names: str) -> List[bytes]:
    return [getattr(pickle, name) for name in names.split()]


class _Unpickler(_Pythons):
    """Reads a pickle of `_RECORDS`; raises UnpicklingError, or any error by damage."""

    def find_class(self, module: str, name: str) -> Any:
        """The class of that name, if it is one of DCP's."""
        if (module, name) not in _NAMES:
            raise pickle.UnpicklingError(
                f"it names {module}.{name}, which is no record of torch.distributed.checkpoint"
            )
        return _NAMES[module, name]

    def load_reduce(self) -> None:
        """Calls one of `_CALLED`, with numbers and text."""
        called, given = self.stack[-2:]
        # torch.Size is called with one tuple, the sizes.
        plain = given[0] if called is torch.Size else given
        _check(any(called is one for one in _CALLED) and type(plain) is tuple)
        _check(all(type(one) in (int, str) for one in plain))
        super().load_reduce()

    def load_newobj(self) -> None:
        """Makes a record without a state."""
        kind, given = self.stack[-2:]
        _check(isinstance(kind, type) and kind in _RECORDS and given == ())
        super().load_newobj()

    def load_build(self) -> None:
        """Gives a record its state."""
        record = self.stack[-2]
        _check(type(record) in _RECORDS)
        super().load_build()
        # Afterwards, since the state may set any attribute.
        for name, kind in _RECORDS[type(record)].items():
            _check(isinstance(getattr(record, name, None), kind))

    def load_setitem(self) -> None:
        """Puts a value into a dict."""
        value, key = self.stack.pop(), self.stack.pop()
        self._put([key], [value])

    def load_setitems(self) -> None:
        """Puts values into a dict."""
        items = self.pop_mark()
        _check(len(items) % 2 == 0)
        self._put(items[::2], items[1::2])

    def _put(self, keys: List[Any], values: List[Any]) -> None:
        _check(type(self.stack[-1]) is dict)
        _check(all(type(key) in (str, MetadataIndex) for key in keys))
        self.stack[-1].update(zip(keys, values))

    def _refuse(self) -> None:
        _check(False)

    dispatch = {
        **dict.fromkeys(range(256), _refuse),
        **{code[0]: _Pythons.dispatch[code[0]] for code in _codes(_OF_PLAIN_DATA)},
        pickle.REDUCE[0]: load_reduce,
        pickle.NEWOBJ[0]: load_newobj,
        pickle.BUILD[0]: load_build,
        pickle.SETITEM[0]: load_setitem,
        pickle.SETITEMS[0]: load_setitems,
    }


def _check(is_plain: bool) -> None:
    if not is_plain:
        raise pickle.UnpicklingError("it does what the pickle of a DCP's metadata does not")


def read_metadata(directory: str) -> Metadata:
    """`.metadata` of the DCP at a path or URL.

    Raises:
        BadInput: it is damaged, none of a DCP's, or names a file elsewhere.
    """
    path = joined(directory, INDEXES["dcp"])
    with unreadable(directory):
        found = _Unpickler(io.BytesIO(read_whole(path))).load()
        _check(type(found) is Metadata)
        places = list(found.storage_data.values())
        _check({type(place) for place in places} <= {_StorageInfo})
        tensors = found.state_dict_metadata.values()
        lists = [one.chunks for one in tensors if isinstance(one, TensorStorageMetadata)]
        _check(sum(map(len, lists)) <= len(places))
        _check({type(chunk) for chunk in chain(*lists)} <= {ChunkStorageMetadata})
        for name in {place.relative_path for place in places}:
            file = data_file(directory, name, path)
            if not is_remote(file) and os.path.exists(file) and not os.path.isfile(file):
                raise BadInput(f"{file} is not a regular file")
    return found


@contextmanager
def unreadable(directory: str) -> Iterator[None]:
    """Raises an unpickler's error, or a gap in its result, as BadInput of a DCP's metadata."""
    try:
        yield
    except (Unreachable, MissingExtra, UsageError):
        raise
    except Exception as error:
        raise BadInput(
            f"{directory}/.metadata cannot be read: {words_of(error)}; expected a "
            "torch Distributed Checkpoint"
        ) from error
