"""A converted model's scores of the rows of a Spark DataFrame, on the executors.

1. The conversion is a directory that driver and executors read by one path: shared storage, or a
   folder that is on each of them.
2. An executor's Python processes load the model once each. Arrow batches go through it as the
   batches of `semisync score` do; no row becomes a Python object.
3. The scores come back beside the key, as `parity.spark.compare` takes them.

The executors' Python needs this package with the extras `torch`, `report` and `spark`.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple

import pyarrow as pa

from migrate.scoring import model_files
from migrate.scoring.features import feature
from migrate.scoring.in_converted import ConvertedModel
from migrate.scoring.model import Input, columns_of, naming_inputs
from migrate.scoring.module_inputs import ModuleInputs
from migrate.scoring.options import Given
from migrate.scoring.output import LOGIT, SCORE
from migrate.scoring.run import Reading
from migrate.scoring.scores import scorer, written
from parity.inputs.checks import Column
from parity.io.batches import Batch
from semisync.common.errors import MissingColumn, SemisyncError, UsageError
from semisync.common.extras import extra

_BATCH = "a batch of the DataFrame"  # what messages call it
_NONE: Mapping[str, Any] = {}
_LOADED: Dict[str, ConvertedModel] = {}  # at most one


def score_dataframe(
    df: Any,
    converted: str,
    keep: Sequence[str],
    *,
    inputs: Mapping[str, str] = _NONE,
    sparse: Mapping[str, str] = _NONE,
    feeds: Mapping[str, Any] = _NONE,
    fills: Mapping[str, str] = _NONE,
    types: Mapping[str, str] = _NONE,
    output: Optional[str] = None,
    column: Optional[int] = None,
    sigmoid: bool = False,
    batch_size: int = 4096,
) -> Any:
    """The rows with the model's scores, in a column `score`, double.

    Args:
        df: a pyspark.sql.DataFrame with a column for each input of the model.
        converted: what `semisync convert --model` wrote, by a path that every executor reads.
        keep: the columns that the result has beside the score: key, label, user, day.
        inputs, sparse: by column, the input that it feeds where that has another name.
        feeds: constants by input.
        fills, types: by column or pattern, what stands for a missing value, and the type that the
            column is cast to first.
        output, column: which output, and which of several values per row.
        sigmoid: the output is a logit, which goes into a column `logit`; the score is its
            probability.
        batch_size: rows at a time.

    Returns:
        A DataFrame; nothing runs before it is used.

    Raises:
        BadInput: a column that is not there, or a directory without a model.
        UsageError: an input that the model does not have.
        MissingExtra: without pyspark or pandas.

    Examples:
        scored = migrate.score_dataframe(rows, converted, ["id", "y"], sigmoid=True, inputs=INPUTS)
    """
    named = [(name, taken, False) for name, taken in inputs.items()]
    named += [(name, taken, True) for name, taken in sparse.items()]
    scoring = _Scoring(
        converted,
        tuple(named),
        tuple(feeds.items()),
        output,
        tuple(keep),
        Reading(tuple(types.items()), tuple(fills.items()), size=batch_size),
        column,
        sigmoid,
    )
    return _scored(df, scoring, _inputs_of(scoring), "the DataFrame")


def score_files(args: argparse.Namespace, said: Given) -> int:
    """`semisync score --spark`: writes a folder of Parquet; returns the exit code."""
    from parity.spark.session import explained, read, start

    session = start(args.spark)
    keep = dict.fromkeys(filter(None, [args.key, args.label, *args.keep]))
    scoring = _Scoring(
        args.converted,
        tuple(said.named),
        tuple(said.feeds.items()),
        args.output,
        tuple(keep),
        Reading(tuple(said.types), tuple(said.fills), size=args.batch_size),
        args.column,
        args.sigmoid,
    )
    inputs = _inputs_of(scoring)
    with naming_inputs(columns_of(inputs)):
        scored = _scored(read(session, args.data), scoring, inputs, args.data)
    there = os.path.exists(args.out)
    try:
        with explained("Spark ended the scoring"):
            scored.write.parquet(args.out)
            rows = session.read.parquet(args.out).count()
    except SemisyncError:
        if not there:
            shutil.rmtree(args.out, ignore_errors=True)
        raise
    print(f"{rows:,} rows: {args.out}")
    return 0


def _scored(df: Any, scoring: _Scoring, inputs: Sequence[Input], source: str) -> Any:
    """`score_dataframe`; `source` is what messages call the DataFrame."""
    with extra("spark", "to score on Spark"):
        import pandas  # noqa: F401 (mapInArrow asks for it)
        from pyspark.sql import types as T
    keep = scoring.keep
    taken = [one.column for one in inputs]
    for name in (*keep, *taken):
        if name not in df.columns:
            raise MissingColumn.of(source, name, df.columns)
    added = [SCORE, LOGIT] if scoring.sigmoid else [SCORE]
    for name in added:
        if name in keep:
            raise UsageError(f"a column to keep is called {name!r}, as that of the scores is")
    schema = T.StructType(
        [df.schema[name] for name in keep] + [T.StructField(name, T.DoubleType()) for name in added]
    )
    columns = dict.fromkeys([*keep, *taken])
    return df.select(*("`" + name.replace("`", "``") + "`" for name in columns)).mapInArrow(
        scoring, schema
    )


def _inputs_of(scoring: _Scoring) -> List[Input]:
    """Those of model.py that take a column, without its weights."""
    from migrate.runtime.source import read_source

    model_files.of_conversion(scoring.converted)
    source, feeds = read_source(scoring.converted), dict(scoring.feeds)
    path = f"{scoring.converted}/model.py"
    return ModuleInputs(path, source.INPUTS, scoring.named, feeds).inputs


class _Scoring(NamedTuple):
    """What an executor does; it is sent there by its values."""

    converted: str
    named: Tuple[Tuple[str, str, bool], ...]
    feeds: Tuple[Tuple[str, Any], ...]
    output: Optional[str]
    keep: Tuple[str, ...]
    reading: Reading
    column: Optional[int]
    sigmoid: bool

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Scores Arrow batches of rows."""
        model = self._model()
        size = min(self.reading.size, model.batch or sys.maxsize)
        for whole in batches:
            for start in range(0, whole.num_rows, size):
                table = pa.Table.from_batches([whole.slice(start, size)])
                yield from self._scored(model, table).to_batches()

    def _model(self) -> ConvertedModel:
        """This process has one, which it loads when it is first asked for it."""
        wanted = repr(self[:4])
        if wanted not in _LOADED:
            origin = model_files.of_conversion(self.converted)
            model = ConvertedModel(
                self.converted, self.named, dict(self.feeds), self.output, origin
            )
            _LOADED.clear()
            _LOADED[wanted] = model
        return _LOADED[wanted]

    def _scored(self, model: ConvertedModel, table: pa.Table) -> pa.Table:
        features = [
            feature(
                table[taken.column],
                Column(taken.column, _BATCH),
                taken,
                self.reading.type_of(taken.column),
                self.reading.fill_of(taken.column),
            )
            for taken in model.inputs
        ]
        score = scorer(model, Batch(_BATCH, 0, table), features, self.column)
        found = written(score(0, table.num_rows), self.sigmoid)
        scored = table.select(list(self.keep))
        for name, values in found.items():
            scored = scored.append_column(name, pa.array(values.astype("float64")))
        return scored
