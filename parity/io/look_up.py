"""The values that single rows have in columns that are not compared, to know the rows by."""

from typing import Any, Dict, List, Optional, Sequence

import numpy as np
import pyarrow as pa

from parity.io.batches import batches
from parity.io.text_format import TextFormat


def values_at(
    path: str, names: Sequence[str], rows: Sequence[int], text: Optional[TextFormat] = None
) -> List[Dict[str, Any]]:
    """Each row's values by column, as JSON has them.

    Args:
        path: a data set (parity.io.data_files); it is read once, up to the last of the rows.
        names: columns of any type; a value may be missing.
        rows: their numbers from 0, in any order.
        text: how text files are written, whatever their names.

    Raises:
        BadInput: a column that is not there.
    """
    values: Dict[int, Dict[str, Any]] = {}
    wanted, seen = np.unique(np.array(rows, np.int64)), 0
    for batch in batches(path, [], names, alike=False, text=text):
        first, after = np.searchsorted(wanted, (seen, seen + batch.table.num_rows))
        for row in wanted[first:after].tolist():
            one_row = batch.table.slice(row - seen, 1)
            values[row] = {name: _plain(one_row[name][0]) for name in names}
        seen += batch.table.num_rows
        if after == len(wanted):
            break
    return [values[row] for row in rows]


def _plain(value: pa.Scalar) -> Any:
    """Numbers and words as they are, anything else in words."""
    if pa.types.is_temporal(value.type):
        value = value.cast(pa.string())
    plain = value.as_py()
    if isinstance(plain, bytes):
        return plain.decode("utf-8", "replace")
    finite = not isinstance(plain, float) or abs(plain) < float("inf")
    return (
        plain
        if plain is None or isinstance(plain, (bool, int, str, float)) and finite
        else str(plain)
    )
