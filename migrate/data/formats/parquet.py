"""Parquet: a block is a row group."""

from __future__ import annotations

from typing import Any, Dict, List, Sequence, Tuple

import pyarrow.parquet

from migrate.storage.sources import opened


def survey(path: str, size: int) -> Tuple[Any, List[int]]:
    """The Arrow schema of the file, and the rows of each row group."""
    with opened(path) as source:
        file = pyarrow.parquet.ParquetFile(source)
        groups = [file.metadata.row_group(k) for k in range(file.metadata.num_row_groups)]
        return file.schema_arrow, [group.num_rows for group in groups]


def read(path: str, block: int, names: Sequence[str]) -> Dict[str, Any]:
    """The named columns of a row group, as Arrow arrays."""
    with opened(path) as source:
        file = pyarrow.parquet.ParquetFile(source, page_checksum_verification=True)
        table = file.read_row_group(block, columns=list(names), use_threads=False)
    return {name: table[name] for name in names}
