"""Parquet files (https://parquet.apache.org/docs/file-format/), read whole through pyarrow.

Page checksums are verified where the writer stored them.
"""

import pathlib
from typing import TYPE_CHECKING

from semisync.common.errors import BadInput
from semisync.demo.data.readers.source import Source

if TYPE_CHECKING:
    import pyarrow as pa

MAGIC = b"PAR1"


class ParquetFile(Source):
    """A Parquet file; its schema is read when it is opened, its rows when asked for."""

    infer = False

    def __init__(self, path: pathlib.Path) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            schema = pq.read_schema(str(path))
        except (pa.ArrowException, OSError, MemoryError) as error:
            raise _corrupt(path, error) from error
        names = tuple(schema.names)
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise BadInput(f"{path} has more than one column {twice[0]!r}; names must differ")
        super().__init__(path, names)

    def table(self) -> "pa.Table":
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            table = pq.read_table(
                str(self.path), page_checksum_verification=True, partitioning=None
            )
            table.validate(full=True)
        except (pa.ArrowException, OSError, MemoryError) as error:
            raise _corrupt(self.path, error) from error
        return table

    def where(self, row: int) -> str:
        return f"{self.path} row {row + 1}"


def _corrupt(path: pathlib.Path, error: BaseException) -> BadInput:
    reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    return BadInput(f"{path} is not a whole Parquet file: {reason}; copy or write it anew")
