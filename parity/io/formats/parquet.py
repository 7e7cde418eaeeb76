"""Parquet: a block is a row group."""

from typing import Iterator, List, Optional, Sequence

import pyarrow as pa
import pyarrow.parquet

from parity.io.formats.file import Columns
from semisync.storage.sources import opened
from semisync.storage.unfolding import refuse_row_groups


class Parquet:
    """A Parquet file."""

    def __init__(self, path: str) -> None:
        # Read ahead, all data would be kept until the end of the file.
        self._file = pyarrow.parquet.ParquetFile(
            opened(path), pre_buffer=False, page_checksum_verification=True
        )
        self._path = path
        self.schema: pa.Schema = self._file.schema_arrow
        self.columns: Optional[List[str]] = self.schema.names
        self.rows: Optional[int] = self._file.metadata.num_rows

    def holds_rows(self) -> bool:
        """Whether there is a row."""
        return bool(self.rows)

    def tables(self, columns: Columns, size: int) -> Iterator[pa.Table]:
        """The rows in tables of `size`."""
        if not self.rows:
            yield self._file.read(columns=list(columns.names))
        self._refuse_unfolding(columns.names, range(self._file.num_row_groups))
        for part in self._file.iter_batches(size, columns=list(columns.names)):
            yield pa.Table.from_batches([part])

    def block_rows(self) -> List[int]:
        """The rows of each row group."""
        about = self._file.metadata
        return [about.row_group(k).num_rows for k in range(about.num_row_groups)]

    def block(self, number: int, names: Sequence[str]) -> pa.Table:
        """The named columns of a row group."""
        self._refuse_unfolding(names, [number])
        # Training reads blocks in several threads already.
        return self._file.read_row_group(number, columns=list(names), use_threads=False)

    def _refuse_unfolding(self, names: Sequence[str], groups: Sequence[int]) -> None:
        with opened(self._path) as source:
            refuse_row_groups(source, self._file.metadata, self._path, names, groups)
