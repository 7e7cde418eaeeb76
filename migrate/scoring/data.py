"""The rows of a data set in batches, each from one file, in order and in bounded memory.

The data sets are those of `parity.io.batches`, with the columns of their paths. Columns of text
files stay text, so that whoever knows their type can name the row that does not have it; the type
of a column of unknown type is the one that its first 16 MB suggest. An empty field is
missing. In a TFRecord file a feature with one value in every record of a batch is a plain column,
any other a column of lists; a record that lacks it has a missing value there.
"""

from typing import Iterator, Optional

from parity.io.batches import Batch, batches_of
from parity.io.formats import Columns
from parity.io.text_format import TextFormat
from semisync.common.errors import BadInput


def batches(
    path: str, columns: Columns, size: int, text: Optional[TextFormat] = None
) -> Iterator[Batch]:
    """The columns of the data set in batches of at most `size` rows.

    Raises:
        BadInput: a missing file or column, damage, or a data set without rows.
    """
    empty = True
    for read in batches_of(path, columns, size, text):
        for start in range(0, read.table.num_rows, size):
            part = read.table.slice(start, size)
            yield read._replace(skipped=read.skipped + start, table=part)
            empty = False
    if empty:
        raise BadInput(f"{path} has no rows to score")
