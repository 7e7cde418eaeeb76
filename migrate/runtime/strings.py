"""A tensor of strings.

A string is any bytes, as in TensorFlow. All strings lie one after the other in `data`; string i of
the flattened tensor is data[offsets[i]:offsets[i + 1]]. There is no Python object per string.

Operations that move strings (slicing, tiling, choosing, joining along an axis) apply to a NumPy
array of their positions, and then take the strings at these positions.
"""

from __future__ import annotations

import math
from typing import Any, Iterator, List, Optional, Sequence, Tuple

import numpy
import pyarrow
import torch

from migrate.runtime import text_arrays
from semisync.common.compiled import spans
from semisync.common.errors import BadInput, UsageError

Array = numpy.ndarray
Shape = Tuple[int, ...]


class Strings:
    """A tensor of strings.

    Args:
        data: uint8 [bytes].
        offsets: int64 [n + 1], ascending, within `data`.
        shape: its product is n; () is a scalar.
    """

    __slots__ = ("data", "offsets", "shape")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, data: Array, offsets: Array, shape: Optional[Sequence[int]] = None) -> None:
        self.data = _read_only(data)
        self.offsets = _read_only(offsets)
        self.shape: Shape = (len(offsets) - 1,) if shape is None else tuple(map(int, shape))

    @classmethod
    def of(cls, values: Any, shape: Optional[Sequence[int]] = None) -> Strings:
        """The strings of an Arrow or NumPy array, a nested list, or one str or bytes.

        Text is encoded as UTF-8; null is the empty string, as in TensorFlow's own readers. Arrow's
        buffers are shared, not copied.

        Args:
            shape: of an Arrow array, which has one dimension.
        """
        if isinstance(values, cls):
            return values if shape is None else values.reshape(shape)
        if isinstance(values, (str, bytes)):
            one = values.encode("utf-8") if isinstance(values, str) else values
            found = cls(numpy.frombuffer(one, numpy.uint8), numpy.array([0, len(one)]), ())
        else:
            data, offsets, own = text_arrays.bytes_of(values)
            found = cls(data, offsets, own)
        return found if shape is None else found.reshape(shape)

    @classmethod
    def of_spans(
        cls,
        data: Array,
        starts: Array,
        ends: Array,
        shape: Optional[Sequence[int]] = None,
    ) -> Strings:
        """The strings data[start:end], copied; starts and ends: int64 [n]."""
        copied, offsets = spans.gather(
            _read_only(data), numpy.ascontiguousarray(starts), numpy.ascontiguousarray(ends)
        )
        return cls(copied, offsets, shape)

    @classmethod
    def where(cls, condition: torch.Tensor, one: Strings, other: Strings) -> Strings:
        """The strings of `one` where the condition holds, else of `other`; broadcast together."""
        others = other._positions() + one.numel()
        chosen = numpy.where(_array(condition), one._positions(), others)
        return _flat_concat([one, other])._take(chosen)

    @classmethod
    def concat(cls, parts: Sequence[Strings], axis: int = 0) -> Strings:
        """The parts joined along an axis that they have."""
        return _joined(parts, lambda positions: numpy.concatenate(positions, axis))

    @classmethod
    def stack(cls, parts: Sequence[Strings], axis: int = 0) -> Strings:
        """The parts, all of one shape, joined along a new axis."""
        return _joined(parts, lambda positions: numpy.stack(positions, axis))

    @property
    def ndim(self) -> int:
        """How many axes there are."""
        return len(self.shape)

    def numel(self) -> int:
        """How many strings there are."""
        return len(self.offsets) - 1

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("a scalar has no length")
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        """The strings as bytes if there is one axis, or else the rows."""
        return iter(self.numpy())

    def __repr__(self) -> str:
        return f"Strings({self.numpy().tolist()!r})"

    def arrow(self) -> pyarrow.Array:
        """The flattened strings as an Arrow large_binary array that shares their memory."""
        return self._arrow(pyarrow.large_binary())

    def text(self) -> pyarrow.Array:
        """The flattened strings as Arrow's large_string, not checked to be UTF-8."""
        return self._arrow(pyarrow.large_string())

    def _arrow(self, kind: pyarrow.DataType) -> pyarrow.Array:
        buffers = [None, pyarrow.py_buffer(self.offsets), pyarrow.py_buffer(self.data)]
        return pyarrow.Array.from_buffers(kind, self.numel(), buffers)

    def numpy(self) -> Array:
        """An object array of bytes: for reading by people and tests."""
        out = numpy.empty(self.numel(), object)
        out[:] = self.arrow().to_pylist()
        return out.reshape(self.shape)

    def reshape(self, shape: Sequence[int]) -> Strings:
        """The same strings in another shape; one length may be -1."""
        wanted = [int(length) for length in shape]
        known = math.prod(length for length in wanted if length != -1)
        if wanted.count(-1) == 1 and known and not self.numel() % known:
            wanted[wanted.index(-1)] = self.numel() // known
        if min(wanted, default=0) < 0 or math.prod(wanted) != self.numel():
            raise BadInput(f"{self.numel()} strings do not fill a tensor of shape {list(shape)}")
        return Strings(self.data, self.offsets, wanted)

    def split(self, rows: int) -> List[Strings]:
        """Blocks of `rows` along the first axis, the last one shorter, that share the memory."""
        width = math.prod(self.shape[1:])
        found = []
        for first in range(0, len(self), rows):
            count = min(rows, len(self) - first)
            offsets = self.offsets[first * width : (first + count) * width + 1]
            found.append(Strings(self.data, offsets, (count, *self.shape[1:])))
        return found

    def expand_dims(self, axis: int) -> Strings:
        """The strings with a new axis of length 1."""
        if not -self.ndim - 1 <= axis <= self.ndim:
            raise BadInput(f"axis {axis} does not fit strings of shape {list(self.shape)}")
        place = axis + self.ndim + 1 if axis < 0 else axis
        return Strings(self.data, self.offsets, (*self.shape[:place], 1, *self.shape[place:]))

    def squeeze(self, axes: Sequence[int] = ()) -> Strings:
        """The strings without these axes of length 1; without all such axes if none is named."""
        places = {axis % self.ndim for axis in axes} if axes else None
        if places and any(self.shape[axis] != 1 for axis in places):
            raise BadInput(f"axes {list(axes)} of shape {list(self.shape)} are not all of length 1")
        kept = [
            length
            for axis, length in enumerate(self.shape)
            if (axis not in places if places is not None else length != 1)
        ]
        return Strings(self.data, self.offsets, kept)

    def tile(self, multiples: Sequence[int]) -> Strings:
        """The strings, repeated `multiples` times along each axis."""
        return self._take(numpy.tile(self._positions(), [int(times) for times in multiples]))

    def permute(self, axes: Sequence[int]) -> Strings:
        """The strings with their axes in another order."""
        return self._take(self._positions().transpose([int(axis) for axis in axes]))

    def broadcast_to(self, shape: Sequence[int]) -> Strings:
        """The strings, repeated to this shape by the rules of broadcasting."""
        return self._take(numpy.broadcast_to(self._positions(), [int(n) for n in shape]))

    def take(self, positions: torch.Tensor) -> Strings:
        """The strings at `positions` (int) of the flattened tensor, in the shape of `positions`."""
        return self._take(_array(positions))

    def gather(self, indices: torch.Tensor, axis: int = 0) -> Strings:
        """The slices at `indices` along an axis, as TensorFlow's GatherV2."""
        return self._take(_in_bounds(numpy.take, self._positions(), _array(indices), axis))

    def __getitem__(self, key: Any) -> Strings:
        """Indexes as a tensor does: numbers, slices, `...`, None, tensors of numbers or bools."""
        if isinstance(key, torch.Tensor) and key.dtype == torch.bool and key.shape == self.shape:
            return self._take(numpy.flatnonzero(_array(key)))
        key = tuple(map(_array, key)) if isinstance(key, tuple) else _array(key)
        return self._take(_in_bounds(lambda: numpy.asarray(self._positions()[key])))

    def __eq__(self, other: object) -> torch.Tensor:  # type: ignore[override]
        """Equality of each string with its partner in `other`, Strings or bytes; bool."""
        if isinstance(other, (bytes, str)) and not other:
            # Emptiness shows in the offsets alone.
            return torch.from_numpy(self.offsets[1:] == self.offsets[:-1]).reshape(self.shape)
        if isinstance(other, (bytes, str)):
            other = Strings.of(other)
        if not isinstance(other, Strings):
            return NotImplemented
        one = self
        if other.numel() != 1 or other.ndim > one.ndim:
            shape = numpy.broadcast_shapes(one.shape, other.shape)
            one = one if one.shape == shape else one.broadcast_to(shape)
            other = other if other.shape == shape else other.broadcast_to(shape)
        # A single string is compared with all, without being repeated.
        step = 0 if other.numel() == 1 else 1
        equal = spans.equal(one.data, one.offsets, other.data, other.offsets, step)
        return torch.from_numpy(equal).reshape(one.shape)

    def __ne__(self, other: object) -> torch.Tensor:  # type: ignore[override]
        equal = self.__eq__(other)
        return NotImplemented if equal is NotImplemented else ~equal

    def _positions(self) -> Array:
        """The position of each string among the flattened ones, int64 of the tensor's shape."""
        return numpy.arange(self.numel()).reshape(self.shape)

    def _take(self, positions: Array) -> Strings:
        flat = numpy.ascontiguousarray(positions, numpy.int64).reshape(-1)
        # All strings in their order: a view, without a copy of the text.
        if len(flat) == self.numel() and len(flat) and not flat[0] and _ascending(flat):
            return Strings(self.data, self.offsets, positions.shape)
        data, offsets = spans.take(self.data, self.offsets, flat)
        if offsets[-1] < 0:  # `spans.take` met an index out of range
            raise BadInput(f"there are {self.numel()} strings; an index is outside 0 and that")
        return Strings(data, offsets, positions.shape)


def _read_only(array: Array) -> Array:
    """A view that cannot be written to.

    numba compiles functions again for such arrays: Arrow's are, so all are made so.
    """
    if array.flags.writeable:
        array = array.view()
        array.flags.writeable = False
    return array


def _joined(parts: Sequence[Strings], join: Any) -> Strings:
    if not parts:
        raise UsageError("there are no strings to join")
    starts = numpy.cumsum([0] + [part.numel() for part in parts])
    positions = join([part._positions() + start for part, start in zip(parts, starts)])
    together = _flat_concat(parts)
    if positions.size and positions.reshape(-1)[0] == 0 and _ascending(positions):
        return together.reshape(positions.shape)
    return together._take(positions)


def _ascending(positions: Array) -> bool:
    flat = positions.reshape(-1)
    return bool((flat[1:] == flat[:-1] + 1).all())


def _flat_concat(parts: Sequence[Strings]) -> Strings:
    offsets, total = [numpy.zeros(1, numpy.int64)], 0
    for part in parts:
        # A part may be a slice of a larger text, whose offsets do not begin with 0.
        offsets.append(part.offsets[1:] - part.offsets[0] + total)
        total += int(part.offsets[-1] - part.offsets[0])
    data = [part.data[part.offsets[0] : part.offsets[-1]] for part in parts]
    return Strings(numpy.concatenate(data), numpy.concatenate(offsets))


def _array(index: Any) -> Any:
    return index.cpu().numpy() if isinstance(index, torch.Tensor) else index


def _in_bounds(index: Any, *args: Any) -> Array:
    try:
        return index(*args)
    except IndexError as error:
        raise BadInput(f"strings: {error}") from error
