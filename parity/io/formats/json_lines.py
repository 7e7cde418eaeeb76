"""Lines of JSON."""

from typing import Iterator, List, Optional

import pyarrow as pa
import pyarrow.json

from parity.io.formats.file import Columns
from parity.io.formats.nesting import Shallow
from parity.io.formats.text import BLOCK
from semisync.storage.sources import streamed


class JsonLines:
    """A file of JSON objects, one a line, such as {"label": 1, "score": 0.25}."""

    rows: Optional[int] = None

    def __init__(self, path: str) -> None:
        self._path = path
        options = pyarrow.json.ReadOptions(block_size=BLOCK)
        with pyarrow.json.open_json(_source(path), options) as reader:
            self._schema = reader.schema  # of the first block
        self.columns: Optional[List[str]] = self._schema.names

    def holds_rows(self) -> bool:
        """Whether there is a row, as in every file that can be opened."""
        return True

    def tables(self, columns: Columns, size: int) -> Iterator[pa.Table]:
        """The rows in tables of 16 MB."""
        names = list(columns.names)
        kinds = [self._kind(name, columns.types.get(name)) for name in names]
        options = pyarrow.json.ParseOptions(
            explicit_schema=pa.schema(list(zip(names, kinds))), unexpected_field_behavior="ignore"
        )
        read = pyarrow.json.ReadOptions(block_size=BLOCK)
        with pyarrow.json.open_json(_source(self._path), read, options) as reader:
            for part in reader:
                yield pa.Table.from_batches([part]).select(names)

    def _kind(self, name: str, wanted: Optional[pa.DataType]) -> pa.DataType:
        """The first block's type, or the wanted one of integers, and of text like a moment."""
        found = self._schema.field(name).type
        if wanted is None:
            return found
        widened = pa.types.is_integer(found) and pa.types.is_floating(wanted)
        moment = pa.types.is_timestamp(found) and pa.types.is_string(wanted)
        return wanted if widened or moment else found


def _source(path: str) -> Shallow:
    return Shallow(streamed(path), path, BLOCK)
