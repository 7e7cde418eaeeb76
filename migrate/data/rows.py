"""Some rows as checked Arrow columns, which hold no missing value.

ids                 list<int64 or int32>
weighted            list<struct<id: int64 or int32, weight: float>>
dense               float, or fixed_size_list<float>[width]
label               float
key                 int64, large_string, timestamp[us], or the plain type that the file has
string, strings     large_binary, list<large_binary>
"""

from __future__ import annotations

from typing import Any, NamedTuple, Tuple

import numpy

from migrate.data.position import Position, Share


class Rows(NamedTuple):
    """The rows of a batch before they become tensors.

    Attributes:
        columns: a pyarrow.RecordBatch with a column for each of the schema, of at most `batch_size`
            rows; where the data set has a `split`, of several whole batches.
        batch_size: rows of a whole batch.
        position: the data set's after these rows.
        share: of the global batch, of several batches that of each.

    Examples:
        >>> from migrate.data import Column, open_data
        >>> data = open_data(
        ...     "clicks.parquet", [Column("item", "dense", "int64")], 4, last="drop", convert=list
        ... )
        >>> columns, batch_size, position, share = next(iter(data))
        >>> columns["item"].to_pylist()
        [1, 2, 3, 4]
    """

    columns: Any
    batch_size: int
    position: Position
    share: Share


def lists_of(array: Any) -> Tuple[numpy.ndarray, Any]:
    """Offsets from 0, int32 [rows + 1], and the values of a list array without missing ones."""
    offsets = array.offsets.to_numpy()
    first, last = int(offsets[0]), int(offsets[-1])
    return offsets - first if first else offsets, array.values.slice(first, last - first)
