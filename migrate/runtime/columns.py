"""Columns of a data set as the inputs of a converted module, without a Python loop over rows.

dense     a tensor [rows], [rows, 1] or [rows, k, ...]; of text Strings
sparse    (indices [values, 2], values [values], dense_shape [2]), as TensorFlow's SparseTensor:
          value j of row i is at (i, j), and the longest row determines the width
constant  one value for all rows, such as a rate
"""

from __future__ import annotations

from typing import Any, Dict, Mapping, Optional, Sequence, Tuple, Union

import numpy
import pyarrow
import torch

from migrate.runtime.interface import Input
from migrate.runtime.strings import Strings
from semisync.common.errors import BadInput
from semisync.common.shapes import fitted

Values = Union[numpy.ndarray, pyarrow.Array]


def dense(name: str, wanted: Input, values: Values) -> Any:
    """The input `name` of one batch.

    A column [rows] becomes [rows, 1] for an input with one more dimension, flat lists are reshaped
    for one with several more, see `semisync.common.shapes.fitted`.

    Args:
        values: [rows] or [rows, k, ...] numbers; of text an Arrow array, or one of fixed-size
            lists.

    Raises:
        BadInput: the shape differs from the input's.
    """
    if isinstance(values, pyarrow.Array):
        size: Tuple[int, ...] = (len(values),)
        while pyarrow.types.is_fixed_size_list(values.type):
            size, values = (*size, values.type.list_size), values.flatten()
        found: Any = Strings.of(values, size)
    else:
        size = values.shape
        found = _tensor(wanted, values)
    into = _into(name, wanted, size)
    return found if into == size else found.reshape(into)


def dense_alike(wanted: Input, values: Mapping[str, numpy.ndarray]) -> Dict[str, torch.Tensor]:
    """Several inputs of one batch, each of which is `wanted`.

    Args:
        values: the numbers [rows] of each, by name.

    Raises:
        BadInput: the shape differs from the inputs'.
    """
    stacked = numpy.stack(list(values.values()))
    into = _into(next(iter(values)), wanted, stacked.shape[1:])
    every = torch.from_numpy(stacked).to(_dtype(wanted)).reshape(len(stacked), *into)
    return dict(zip(values, every.unbind()))


def sparse(name: str, wanted: Input, values: Values, lengths: numpy.ndarray) -> Any:
    """The input `name` of one batch.

    Args:
        values: those of all rows, one after the other.
        lengths: int64 [rows], how many each row has.

    Raises:
        BadInput: the input does not have two dimensions.
    """
    if wanted.shape is not None and len(wanted.shape) != 2:
        raise BadInput(
            f"the input {name!r} is sparse in {len(wanted.shape)} dimensions; a column of lists "
            "gives two"
        )
    starts = numpy.cumsum(lengths) - lengths
    rows = numpy.repeat(numpy.arange(len(lengths)), lengths)
    places = numpy.arange(len(values)) - numpy.repeat(starts, lengths)
    indices = torch.from_numpy(numpy.stack([rows, places], 1))
    shape = torch.tensor([len(lengths), int(lengths.max(initial=0))])
    text = isinstance(values, pyarrow.Array)
    return indices, Strings.of(values) if text else _tensor(wanted, values), shape


def constant(name: str, wanted: Input, value: Any) -> Any:
    """The value of an input that is the same for all rows: one value or nested lists.

    Raises:
        BadInput: a value of another type.
    """
    if wanted.dtype == "string":
        return Strings.of(value)
    try:
        return torch.tensor(value, dtype=_dtype(wanted))
    except (TypeError, ValueError, RuntimeError) as error:
        raise BadInput(f"the input {name!r} takes {wanted.dtype}, not {value!r}") from error


def _into(name: str, wanted: Input, size: Tuple[int, ...]) -> Tuple[int, ...]:
    """The shape of an input whose column gives `size`."""
    into = fitted(wanted.shape, size)
    if into is None:
        takes = _sizes(wanted.shape or ())
        raise BadInput(
            f"the input {name!r} takes the shape {takes}, but its column gives {_sizes(size)}"
        )
    return into


def _tensor(wanted: Input, values: numpy.ndarray) -> torch.Tensor:
    # A copy, as torch.tensor makes it in several times the time.
    return torch.from_numpy(numpy.array(values, order="C")).to(_dtype(wanted))


def _dtype(wanted: Input) -> Optional[torch.dtype]:
    return getattr(torch, wanted.dtype) if wanted.dtype else None


def _sizes(shape: Sequence[Optional[int]]) -> str:
    return "[{}]".format(", ".join("?" if size is None else str(size) for size in shape))
