"""The bytes of any container of text: Arrow and NumPy arrays, nested lists.

Text is encoded as UTF-8. Null is the empty string, as in TensorFlow's own readers.
"""

from __future__ import annotations

from typing import Any, Tuple, Union

import numpy
import pyarrow

from semisync.common.compiled import spans
from semisync.common.errors import BadInput, UsageError

Array = numpy.ndarray
Shape = Tuple[int, ...]

_ARROW = (pyarrow.Array, pyarrow.ChunkedArray)
_TEXT = (
    pyarrow.types.is_string,
    pyarrow.types.is_large_string,
    pyarrow.types.is_binary,
    pyarrow.types.is_large_binary,
    pyarrow.types.is_string_view,
    pyarrow.types.is_binary_view,
    pyarrow.types.is_fixed_size_binary,
    pyarrow.types.is_null,
)


def bytes_of(values: Any) -> Tuple[Array, Array, Shape]:
    """All strings one after the other, uint8; int64 [n + 1] where each begins; and the shape.

    Arrow's buffers are shared, not copied.

    Raises:
        BadInput, UsageError: the values are not text.
    """
    if isinstance(values, _ARROW):
        return (*_of_arrow(values), (len(values),))
    array = numpy.asarray(values, None if hasattr(values, "dtype") else object)
    flat = array.reshape(-1)
    if flat.dtype.kind == "U":  # Arrow would end each text at its first NUL
        flat = numpy.char.encode(flat, "utf-8")
    if flat.dtype.kind == "S":
        return (*_of_fixed_width(flat), array.shape)
    if flat.dtype.kind not in "OT":
        raise UsageError(f"strings were expected, not an array of {flat.dtype}")
    try:
        arrow = pyarrow.array(flat.astype(object, copy=False), pyarrow.large_binary())
    except (pyarrow.ArrowTypeError, pyarrow.ArrowInvalid) as error:
        raise BadInput(f"strings were expected: {error}") from error
    return (*_of_arrow(arrow), array.shape)


def _of_fixed_width(values: Array) -> Tuple[Array, Array]:
    """The bytes and offsets of a flat NumPy array of bytes, padded with NULs."""
    width, lengths = values.dtype.itemsize, numpy.char.str_len(values).astype(numpy.int64)
    starts = numpy.arange(len(values)) * width
    data, offsets = spans.gather(
        numpy.frombuffer(values.tobytes(), numpy.uint8), starts, starts + lengths
    )
    return data, offsets


def _of_arrow(array: Union[pyarrow.Array, pyarrow.ChunkedArray]) -> Tuple[Array, Array]:
    if isinstance(array, pyarrow.ChunkedArray):
        array = array.combine_chunks()
        if isinstance(array, pyarrow.ChunkedArray):  # it has no chunk at all
            array = pyarrow.array([], array.type)
    if pyarrow.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if not any(is_text(array.type) for is_text in _TEXT):
        raise UsageError(f"strings were expected, not Arrow's {array.type}")
    array = array.cast(pyarrow.large_binary())
    if array.null_count:
        array = array.fill_null(b"")  # now its buffers hold no bytes for a null
    if not len(array):
        return numpy.empty(0, numpy.uint8), numpy.zeros(1, numpy.int64)
    _, offsets, data = array.buffers()
    # A slice shares its parent's buffers and begins at `offset`.
    bounds = numpy.frombuffer(offsets, numpy.int64)[array.offset : array.offset + len(array) + 1]
    if data is None or not data.size:
        return numpy.empty(0, numpy.uint8), bounds
    return numpy.frombuffer(data, numpy.uint8), bounds
