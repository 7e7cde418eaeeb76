"""Keys that name a row in either of two files: their types, and their equality.

    whole numbers   the same number in any width, signed or not
    text            the same letters; a whole number or a date matches the text that writes it
    moments         the same instant in any unit and time zone
    floating point  whole numbers that it holds exactly, as pandas makes of a column with gaps;
                    such keys match whole numbers, and never text

Several columns together are one key: the text of each, one after the other.

Floating point that has lost digits would match rows that do not belong together, so it is refused.
"""

from typing import Callable, Sequence, Tuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from parity.inputs.checks import Column
from parity.io.columns import has_gaps, to_names
from parity.io.join import as_text
from semisync.common.errors import BadInput

BETWEEN = "\x1f"  # between the texts of a key of several columns: ASCII's unit separator


def to_keys(values: pa.ChunkedArray, column: Column) -> pa.ChunkedArray:
    """Keys as `parity.io.columns.to_names` has them, and whole numbers of floating point as int64.

    Raises:
        BadInput: a missing value, or floating point that names no row surely.
    """
    names = to_names(values, column)
    if not pa.types.is_floating(names.type):
        return names
    numbers = names.to_numpy()
    sure = ~has_gaps(numbers) & (numbers == np.trunc(numbers))
    if not sure.all():
        index = int(sure.argmin())
        raise BadInput(
            f"{column.at(index)} is {numbers[index]}, in {names.type}, which cannot hold every "
            "whole number of that size; write keys as whole numbers or as text"
        )
    return pa.chunked_array([numbers.astype(np.int64)])


def key_of(
    table: pa.Table, names: Sequence[str], column: Callable[[str], Column]
) -> pa.ChunkedArray:
    """The key of each row, of one column or several.

    Args:
        column: names one in messages.

    Raises:
        BadInput: as `to_keys`, or text that could be of two columns.
    """
    parts = [to_keys(table[name], column(name)) for name in names]
    if len(parts) == 1:
        return parts[0]
    texts = [as_text(part, column(name)) for part, name in zip(parts, names)]
    for text, name in zip(texts, names):
        if pc.any(pc.match_substring(text, BETWEEN)).as_py():
            raise BadInput(f"{column(name)} has the control character {BETWEEN!r} in a key")
    return pc.binary_join_element_wise(*texts, pa.scalar(BETWEEN, pa.large_string()))


def refuse_unlike(kinds: Tuple[pa.DataType, pa.DataType], columns: Tuple[Column, Column]) -> None:
    """Refuses floating point beside anything but numbers: 12.0 and "12" may be different keys.

    Args:
        kinds: of the columns as they are in the files.
    """
    plain = [kind.value_type if pa.types.is_dictionary(kind) else kind for kind in kinds]
    for kind, other, column in zip(plain, reversed(plain), columns):
        number = pa.types.is_floating(other) or pa.types.is_integer(other)
        if pa.types.is_floating(kind) and not number:
            raise BadInput(
                f"{column} holds {kind}, but the other file's key {other}; write both as whole "
                "numbers or both as text"
            )
