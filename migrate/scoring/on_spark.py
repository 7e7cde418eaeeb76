"""A model's scores of the rows of a Spark DataFrame, on the executors.

1. Driver and executors read the model's files by one path: on shared storage, or in a folder that
   exists on each of them.
2. An executor's Python processes open the model once each; TensorFlow's runs beside them, in a
   process that ends with them. Arrow batches go through it as the batches of `semisync score` do;
   no row becomes a Python object.
3. The scores are returned beside the key, as `parity.spark.compare` takes them.

The executors' Python needs this package with the extras `report` and `spark`, and `torch` for a
converted model. Only the executors need TensorFlow: one of them lists the inputs of its model.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
from typing import (
    Any,
    Callable,
    Dict,
    Iterator,
    List,
    Mapping,
    NamedTuple,
    Optional,
    Sequence,
    Tuple,
    Union,
)

import numpy as np
import pyarrow as pa

from migrate.scoring import model_files
from migrate.scoring.chosen import (
    Asked,
    Chosen,
    Converted,
    TensorFlowFiles,
    chosen,
    open_model,
    origin_of,
)
from migrate.scoring.document import document
from migrate.scoring.model import Input, Model, columns_of, naming_inputs
from migrate.scoring.module_inputs import ModuleInputs
from migrate.scoring.options import Given
from migrate.scoring.output import LOGIT, SCORE
from migrate.scoring.run import Reading, features_of
from migrate.scoring.scores import Instability, find_instability, scorer, written
from parity.io.batches import Batch
from semisync.answers import answer
from semisync.common import json_text
from semisync.common.errors import MissingColumn, SemisyncError, UsageError
from semisync.common.extras import extra
from semisync.common.terminal import say

_BATCH = "a batch of the DataFrame"  # its name in messages
_NONE: Mapping[str, Any] = {}
_OPEN: Dict[str, Model] = {}  # at most one


def score_dataframe(
    df: Any,
    model: Union[str, TensorFlowFiles],
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
        model: the directory that `semisync convert --model` wrote, or TensorFlow's own files; by a
            path that every executor reads.
        keep: the columns that the result has beside the score: key, label, user, day.
        inputs, sparse: by column, the input that it feeds, if that has another name.
        feeds: constants by input.
        fills, types: by column or pattern, the replacement of a missing value, and the type to
            which the column is first cast.
        output, column: the output, and the number of the value if there are several per row.
        sigmoid: the output is a logit, which goes into a column `logit`; the score is its
            probability.
        batch_size: rows at a time.

    Returns:
        A DataFrame; until it is used only the task that asks TensorFlow for its model's inputs
        runs.

    Raises:
        BadInput: a column is missing, the files hold no model, or there is no TensorFlow.
        UsageError: the model does not have an input.
        MissingExtra: pyspark or pandas is missing.

    Examples:
        scored = migrate.score_dataframe(rows, converted, ["id", "y"], sigmoid=True, inputs=INPUTS)
    """
    named = [(name, taken, False) for name, taken in inputs.items()]
    named += [(name, taken, True) for name, taken in sparse.items()]
    scoring = _Scoring(
        Converted(model) if isinstance(model, str) else model,
        Asked(tuple(named), tuple(feeds.items()), output),
        tuple(keep),
        Reading(tuple(types.items()), tuple(fills.items()), size=batch_size),
        column,
        sigmoid,
    )
    return _scored(df, scoring, _inputs_of(scoring, df.sparkSession), "the DataFrame")


def score_files(args: argparse.Namespace, said: Given) -> int:
    """`semisync score --spark`: writes a folder of Parquet; returns the exit code."""
    from parity.spark.session import explained, read, start

    session = start(args.spark)
    keep = dict.fromkeys(filter(None, [args.key, args.label, *args.keep]))
    scoring = _Scoring(
        chosen(args),
        said.asked(args.output),
        tuple(keep),
        Reading(tuple(said.types), tuple(said.fills), size=args.batch_size),
        args.column,
        args.sigmoid,
    )
    inputs = _inputs_of(scoring, session)
    rows = read(session, args.data)
    with naming_inputs(columns_of(inputs)):
        scored = _scored(rows, scoring, inputs, args.data)
    instability = _instability(rows, scoring, inputs)
    if instability is not None:
        say(f"semisync score: warning: {instability.in_words()}", error=True)
    there = os.path.exists(args.out)
    try:
        with explained("Spark ended the scoring"):
            scored.write.parquet(args.out)
            count = session.read.parquet(args.out).count()
    except SemisyncError:
        if not there:
            shutil.rmtree(args.out, ignore_errors=True)
        raise
    answer(args.json, document(args.out, count, instability), [f"{count:,} rows: {args.out}"])
    return 0


def _scored(df: Any, scoring: _Scoring, inputs: Sequence[Input], source: str) -> Any:
    """`score_dataframe`; `source` is the DataFrame's name in messages."""
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
    return _selected(df, [*keep, *taken]).mapInArrow(scoring, schema)


def _selected(df: Any, names: Sequence[str]) -> Any:
    """The DataFrame of these columns, each once."""
    # In backquotes, since Spark takes a dot in a bare name for a field of a struct.
    return df.select(*("`" + name.replace("`", "``") + "`" for name in dict.fromkeys(names)))


def _instability(df: Any, scoring: _Scoring, inputs: Sequence[Input]) -> Optional[Instability]:
    """The instability of the first rows, which one executor scores for this."""
    from parity.spark.session import explained

    taken = _selected(df, [one.column for one in inputs])
    with explained("Spark ended the scoring"):
        first = df.sparkSession.createDataFrame(taken.take(scoring.reading.size), taken.schema)
        found = first.coalesce(1).mapInArrow(scoring.instability, "found string").collect()
    return Instability(**json_text.loads(found[0].found)) if found else None


def _inputs_of(scoring: _Scoring, session: Any) -> List[Input]:
    """The inputs of the model that take a column: from its model.py, or from TensorFlow."""
    if isinstance(scoring.model, TensorFlowFiles):
        return _inputs_there(scoring, session)
    from migrate.runtime.source import read_source

    directory, asked = scoring.model.directory, scoring.asked
    model_files.of_conversion(directory)
    inputs = read_source(directory).INPUTS
    return ModuleInputs(f"{directory}/model.py", inputs, asked.named, dict(asked.feeds)).inputs


def _inputs_there(scoring: _Scoring, session: Any) -> List[Input]:
    """The inputs of the model, from an executor that opens it."""
    from parity.spark.session import explained

    with extra("spark", "to score on Spark"), explained("Spark cannot open the model"):
        import pandas  # noqa: F401 (mapInArrow asks for it)

        # One row in one partition.
        one = session.range(0, 1, 1, 1).mapInArrow(scoring.described, "inputs string")
        ((found,),) = one.collect()
    return [Input(**each) for each in json_text.loads(found)]


class _Scoring(NamedTuple):
    """The work of an executor, to which it is sent as plain values."""

    model: Chosen
    asked: Asked
    keep: Tuple[str, ...]
    reading: Reading
    column: Optional[int]
    sigmoid: bool

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Scores Arrow batches of rows."""
        model: Optional[Model] = None
        for whole in batches:
            # Only now: a task without rows opens no model.
            model = model or self._opened()
            size = min(self.reading.size, model.batch or sys.maxsize)
            for start in range(0, whole.num_rows, size):
                table = pa.Table.from_batches([whole.slice(start, size)])
                try:
                    scored = self._scored(model, table)
                except BaseException:  # a process that failed, or was left waiting, is of no use
                    _close()
                    raise
                yield from scored.to_batches()

    def described(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The model's inputs in JSON, in one row for each one given."""
        for one in batches:
            found = json.dumps([taken._asdict() for taken in self._opened().inputs])
            yield pa.RecordBatch.from_pydict({"inputs": [found] * one.num_rows})

    def instability(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The instability of the first batch's scores, as a row of JSON, if there is any."""
        for whole in batches:
            model = self._opened()
            table = pa.Table.from_batches([whole.slice(0, model.batch)])
            score = self._scorer(model, table)
            found = find_instability(score(0, table.num_rows), score)
            if found is not None:
                yield pa.RecordBatch.from_pydict({"found": [json.dumps(found.to_json())]})
            return

    def _opened(self) -> Model:
        """The model in this process, reopened when its files have changed."""
        origin = origin_of(self.model, self.asked)
        wanted = repr((self.model, self.asked, origin["sha256"]))
        if wanted not in _OPEN:
            _close()
            _OPEN[wanted] = open_model(self.model, self.asked, origin)
        return _OPEN[wanted]

    def _scorer(self, model: Model, table: pa.Table) -> Callable[[int, int], np.ndarray]:
        """Scores the table's rows from one number to another."""
        batch = Batch(_BATCH, 0, table)
        return scorer(model, batch, features_of(batch, model.inputs, self.reading), self.column)

    def _scored(self, model: Model, table: pa.Table) -> pa.Table:
        found = written(self._scorer(model, table)(0, table.num_rows), self.sigmoid)
        scored = table.select(list(self.keep))
        for name, values in found.items():
            scored = scored.append_column(name, pa.array(values.astype("float64")))
        return scored


def _close() -> None:
    while _OPEN:
        _, model = _OPEN.popitem()
        model.close()
