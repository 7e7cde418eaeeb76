"""The data sets of the folder `shared/data` beside the checkout that have a label, as one form.

    label  float32 [rows]             0 or 1
    x      float32 [rows, numbers]    columns of numbers as they are, thousands among them
    ids    int64   [rows, 8]          hashes of the columns of words
    words  bytes   [rows, 8]

Columns whose numbers reach 100,000, such as times, are left out, and missing numbers are 0.
"""

import pathlib
import zlib
from typing import Any, Callable, Dict, List, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

_ROWS, _COLUMNS, _LARGEST = 2000, 8, 1e5


class DataSet(NamedTuple):
    """A file below `shared/data`, a short name, and its label's column and positive value."""

    name: str
    file: str
    label: str
    positive: Callable[[Any], Any]
    names: bool = True
    separator: str = ","


def _one(label: Any) -> Any:
    return label.astype(float) > 0


DATA_SETS = [
    DataSet("criteo tiny", "criteo_tiny_3idiots/train.tiny.csv", "Label", _one),
    DataSet("open bandit, men", "open_bandit/bts_men.csv", "click", _one),
    DataSet("open bandit, women", "open_bandit/random_women.csv", "click", _one),
    DataSet(
        "census",
        "deepctr_samples/census-income.sample",
        "f42",
        lambda label: np.char.find(label.astype(str), "-") < 0,
        names=False,
    ),
    DataSet("criteo sample", "deepctr_samples/criteo_sample.txt", "label", _one),
    DataSet("movielens", "deepctr_samples/movielens_sample.txt", "rating", lambda r: r > 3),
    DataSet("criteo", "criteo_avazu_lapis_hong/criteo/train.csv", "f0", _one, False, "\t"),
    DataSet("avazu", "criteo_avazu_lapis_hong/avazu/train.csv", "click", _one),
    DataSet("sparrow", "sparrow_test_samples/testSamples.csv", "label", _one),
    DataSet("assistments", "assist2017_pid/interactions.parquet", "label", _one),
]


def write_rows(data: DataSet, folder: pathlib.Path, to: pathlib.Path) -> None:
    """Writes the rows to `to`/rows.npz and rows.parquet."""
    rows = _read(data, folder)
    to.mkdir(parents=True, exist_ok=True)
    np.savez(to / "rows.npz", **rows)
    columns = {"label": rows["label"], "x": list(rows["x"]), "ids": list(rows["ids"])}
    columns.update((f"w{n}", pa.array(list(words))) for n, words in enumerate(rows["words"].T))
    pyarrow.parquet.write_table(pa.table(columns), to / "rows.parquet")


def _read(data: DataSet, folder: pathlib.Path) -> Dict[str, Any]:
    table = _table(data, folder / data.file).slice(0, _ROWS)
    label = np.array(table[data.label].to_pylist())
    numbers: List[Any] = []
    words: List[Any] = []
    for name in table.column_names:
        column = table[name]
        if name == data.label:
            continue
        if pa.types.is_integer(column.type) or pa.types.is_floating(column.type):
            values = np.array(column.fill_null(0).to_pylist(), np.float32)
            if np.isfinite(values).all() and np.abs(values).max() < _LARGEST:
                numbers.append(values)
        words.append([str(one).encode() for one in column.to_pylist()])
    strings = np.array(words[-_COLUMNS:], object).T
    ids = np.vectorize(zlib.crc32)(strings).astype(np.int64)
    return {
        "label": data.positive(label).astype(np.float32),
        "x": np.stack(numbers[:_COLUMNS], 1),
        "ids": ids,
        "words": strings.astype("S"),
    }


def _table(data: DataSet, path: pathlib.Path) -> Any:
    if path.suffix == ".parquet":
        return pyarrow.parquet.read_table(path)
    return pyarrow.csv.read_csv(
        path,
        read_options=pyarrow.csv.ReadOptions(autogenerate_column_names=not data.names),
        parse_options=pyarrow.csv.ParseOptions(delimiter=data.separator),
    )
