"""Files that unfold into far more than they are: refused before they do.

A stream of any length is read in bounded memory. Data held as a whole may have AT_ONCE bytes, or
RATIO times those of its file: a data set folds into a tenth of its size, and gzip folds nothing
into less than a thousandth.
"""

from __future__ import annotations

from typing import Any, Iterable, Optional, Sequence, Set

from semisync.common.errors import BadInput

AT_ONCE = 1 << 30
RATIO = 200

_NUMBER = 8  # bytes


def refuse_unfolding(unfolded: int, stored: int, path: str) -> None:
    """Raises BadInput if a file of `stored` bytes has no business to be `unfolded` bytes."""
    if unfolded > max(AT_ONCE, RATIO * stored):
        raise BadInput(
            f"{path} has {stored:,} bytes and unfolds into more than {unfolded:,}; what is read at "
            f"once may be {AT_ONCE >> 20:,} MiB, or {RATIO} times the file"
        )


def refuse_row_groups(
    source: Any, about: Any, path: str, names: Iterable[str], groups: Optional[Sequence[int]] = None
) -> None:
    """Raises BadInput if columns of a Parquet file's row groups unfold out of proportion.

    Its dictionary holds a value once, however many rows have it. How long the values are is in the
    dictionary alone, which is read where the sizes in the footer leave it open.

    Args:
        source: the file, opened.
        about: its metadata.
        names: the requested columns.
        groups: numbers of row groups; all by default.
    """
    import pyarrow.parquet as pq

    columns = [about.schema.column(number) for number in range(about.num_columns)]
    texts = [column.path for column in columns if column.physical_type == "BYTE_ARRAY"]
    folded = pq.ParquetFile(source, metadata=about, pre_buffer=False, read_dictionary=texts)
    for group in range(about.num_row_groups) if groups is None else groups:
        _refuse_row_group(folded, path, set(names), group)


def _refuse_row_group(file: Any, path: str, wanted: Set[str], group: int) -> None:
    import pyarrow.compute as pc

    about = file.metadata.row_group(group)
    for number in range(about.num_columns):
        column = about.column(number)
        name = column.path_in_schema.split(".")[0]
        if name not in wanted:
            continue
        where = f"{path}: column {name!r} of row group {group}"
        least = max(column.num_values * _NUMBER, column.total_uncompressed_size)
        refuse_unfolding(least, column.total_compressed_size, where)
        # An upper bound, then the longest value, then the exact sum: each costs more to find.
        possible = column.num_values * column.total_uncompressed_size
        if column.physical_type != "BYTE_ARRAY" or possible <= AT_ONCE:
            continue
        first = next(file.iter_batches(1, row_groups=[group], columns=[column.path_in_schema]))
        longest = max((_longest(array) for array in _dictionaries(first.columns)), default=0)
        if column.num_values * longest <= AT_ONCE:
            continue
        total = 0
        for batch in file.iter_batches(row_groups=[group], columns=[column.path_in_schema]):
            for array in _dictionaries(batch.columns):
                lengths = pc.binary_length(array.dictionary)
                total += pc.sum(lengths.take(array.indices)).as_py() or 0
        refuse_unfolding(total, column.total_compressed_size, where)


def _dictionaries(arrays: Sequence[Any]) -> Iterable[Any]:
    """The arrays of dictionaries, also within lists and structs."""
    import pyarrow as pa

    for array in arrays:
        if pa.types.is_dictionary(array.type):
            yield array
        elif pa.types.is_struct(array.type):
            yield from _dictionaries(array.flatten())
        elif pa.types.is_list(array.type) or pa.types.is_map(array.type):
            yield from _dictionaries([array.values])


def _longest(array: Any) -> int:
    import pyarrow.compute as pc

    return pc.max(pc.binary_length(array.dictionary)).as_py() or 0
