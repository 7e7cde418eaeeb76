"""A model over a data set: batches of features in the form that it takes, and the file of its
scores.

The data sets are those of `parity.io.batches`, with the columns of their paths. Columns of text
files stay text, so that the code that knows their type can name a row without it; a column of
unknown type gets the type that its first 16 MB suggest. An empty field is missing. In a TFRecord
file a feature with one value in every record of a batch is a plain column, any other a column of
lists; a record that lacks it has a missing value there.
"""

import contextlib
import sys
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

import pyarrow as pa

from migrate.scoring.features import feature
from migrate.scoring.model import Feature, Input, Model, columns_of, naming_inputs, of_column
from migrate.scoring.output import ScoreFile
from migrate.scoring.scores import Instability, find_instability, scorer, written
from parity.io.batches import Batch, batches_of
from parity.io.formats import Columns
from parity.io.identity import identify
from parity.io.text_format import TextFormat
from parity.provenance import stamp
from semisync.common.errors import BadInput
from semisync.common.files import replacing

Pairs = Sequence[Tuple[str, str]]  # (a column's name or pattern, a setting) pairs


class Reading(NamedTuple):
    """How columns become features, the same for either model.

    Attributes:
        types: (pattern, type) of columns that are first converted to a type, see model.TYPES.
        fills: (pattern, value) of replacements for missing values.
        lists: columns of text files whose fields hold several values.
        text: the format of text files, whatever their names.
        size: rows at a time.
    """

    types: Pairs = ()
    fills: Pairs = ()
    lists: Sequence[str] = ()
    text: Optional[TextFormat] = None
    size: int = 4096

    def type_of(self, column: str) -> Optional[str]:
        """The type to which the column is first converted, if any."""
        return of_column(self.types, column)

    def fill_of(self, column: str) -> Optional[str]:
        """The replacement of a missing value of the column, if any."""
        return of_column(self.fills, column)


class Writing(NamedTuple):
    """The columns of the file beside the score.

    Attributes:
        key, label, keep: columns of the data.
        column: the number of the value, from 0, if the model has several per row.
        sigmoid: the output is a logit; the score is its probability.
    """

    key: Optional[str] = None
    label: Optional[str] = None
    keep: Sequence[str] = ()
    column: Optional[int] = None
    sigmoid: bool = False


_READING, _WRITING = Reading(), Writing()


class Scored(NamedTuple):
    """The result: rows, those with label 1, and whether scores depend on more than their rows."""

    rows: int
    positives: int
    instability: Optional[Instability]


def batches(
    path: str, inputs: Sequence[Input], others: Sequence[str] = (), reading: Reading = _READING
) -> Iterator[Tuple[Batch, List[Feature]]]:
    """The rows of a data set, each batch with the features of `inputs` in their order.

    Args:
        others: further columns of each batch.

    Raises:
        BadInput: a row cannot be read or does not suit an input; the message has its number.
    """
    columns = columns_for(inputs, others, reading)
    with naming_inputs(columns_of(inputs)):
        for batch in rows_of(path, columns, reading.size, reading.text):
            yield batch, features_of(batch, inputs, reading)


def columns_for(inputs: Sequence[Input], others: Sequence[str], reading: Reading) -> Columns:
    """The columns that are read for `inputs`, and `others`."""
    names = dict.fromkeys([*others, *(taken.column for taken in inputs)])
    inferred = {
        taken.column for taken in inputs if not (taken.dtype or reading.type_of(taken.column))
    }
    return Columns(
        list(names),
        types={name: pa.string() for name in names if name in others or name not in inferred},
        several=True,
        lists=reading.lists,
    )


def features_of(batch: Batch, inputs: Sequence[Input], reading: Reading) -> List[Feature]:
    """The features of `inputs`, in their order."""
    return [feature_of(batch, taken, reading) for taken in inputs]


def feature_of(batch: Batch, taken: Input, reading: Reading, fill: Optional[str] = None) -> Feature:
    """The feature of one input; `fill` replaces missing values if `reading` has no fill."""
    told = reading.fill_of(taken.column)
    return feature(
        _values(batch, taken),
        batch.column(taken.column),
        taken,
        reading.type_of(taken.column),
        fill if told is None else told,
    )


def rows_of(
    path: str, columns: Columns, size: int, text: Optional[TextFormat] = None
) -> Iterator[Batch]:
    """The columns of the data set in batches of at most `size` rows.

    Raises:
        BadInput: a file or a column is missing, a file is damaged, or the data set has no rows.
    """
    empty = True
    for read in batches_of(path, columns, size, text):
        for start in range(0, read.table.num_rows, size):
            part = read.table.slice(start, size)
            yield read._replace(skipped=read.skipped + start, table=part)
            empty = False
    if empty:
        raise BadInput(f"{path} has no rows to score")


def _values(batch: Batch, taken: Input) -> pa.ChunkedArray:
    """The column of an input; a value from a path is text for a model that takes text."""
    values = batch.table[taken.column]
    as_text = taken.dtype == "bytes" and taken.column in batch.placed
    return values.cast(pa.string()) if as_text else values


def score(
    model: Model,
    path: str,
    out: str,
    reading: Reading = _READING,
    writing: Writing = _WRITING,
    progress: Callable[[int, str], None] = lambda rows, file: None,
) -> Scored:
    """Writes the model's score of every row of a data set to the Parquet file `out`.

    Args:
        progress: called after each batch with the rows so far and the file they are from.

    Raises:
        BadInput: as `batches`, or a score is not one finite number; `out` is not written then.
    """
    reading = reading._replace(size=min(reading.size, model.batch or sys.maxsize))
    others = [name for name in (writing.key, writing.label, *writing.keep) if name]
    files: Dict[str, int] = {}
    instability, looked_for = None, False
    with replacing(out) as beside, contextlib.ExitStack() as stack:
        sink = ScoreFile(str(beside), writing.key, writing.label, writing.keep)
        stack.callback(sink.close)
        for batch, features in batches(path, model.inputs, others, reading):
            rows = batch.table.num_rows
            rescore = scorer(model, batch, features, writing.column)
            scores = rescore(0, rows)
            if rows > 1 and not looked_for:
                instability, looked_for = find_instability(scores, rescore), True
            sink.add(batch, written(scores, writing.sigmoid))
            # The rows of the file so far; those of its last batch are all of them.
            files[batch.file] = batch.skipped + rows
            progress(sink.rows, batch.file)
        sink.finish(_about(model, writing, files, instability))
    return Scored(sink.rows, sink.positives, instability)


def _about(
    model: Model, writing: Writing, files: Dict[str, int], instability: Optional[Instability]
) -> Dict[str, Any]:
    return {
        "model": {
            **model.origin(),
            "inputs": [taken._asdict() for taken in model.inputs],
            "output": model.output,
            "sigmoid": writing.sigmoid,
            "instability": None if instability is None else instability.to_json(),
        },
        "data": [identify(file, rows)._asdict() for file, rows in files.items()],
        **stamp(),
    }
