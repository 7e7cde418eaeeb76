"""Rows to score, and models of each TensorFlow with what its own session says of these rows."""

import io
import pathlib
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from tests.support.require import forked_tensorflow, tf1_python
from tests.support.written import written

ROWS = 600
GRAPH_ROWS = 300


class Models:
    """What `write_models` wrote of some rows, and the interpreter that wrote it."""

    def __init__(self, rows, python):
        self.python = python
        lists = rows["genres"].combine_chunks()
        self.folder, self.expected = _written(
            "write_models.py",
            python,
            user=rows["user"],
            age=rows["age"],
            genres=lists.flatten(),
            many=lists.value_lengths(),
        )

    @property
    def checkpoint(self):
        """The arguments that score the checkpoint."""
        return [
            *("--checkpoint", str(self.folder / "model.ckpt"), "--tf-python", self.python),
            *("--input", "user=user_id", "--input", "age", "--sparse", "genres"),
            *("--feed", "is_training=false", "--output", "logits"),
        ]


class Graphs:
    """What `write_graphs` wrote, the interpreter that wrote it, and rows for its graphs."""

    def __init__(self, folder, python):
        self.python = python
        random = np.random.default_rng(0)
        columns = {
            "x": random.normal(size=GRAPH_ROWS).astype(np.float32),
            "item": random.integers(0, 1000, GRAPH_ROWS),
        }
        self.data = str(folder / "rows.parquet")
        pyarrow.parquet.write_table(pa.table(columns), self.data, row_group_size=100)
        self.folder, self.expected = _written("write_graphs.py", python, **columns)

    def checkpoint(self, name, output="logits"):
        """The arguments that score one of the checkpoints."""
        model = ["--checkpoint", str(self.folder / name), "--tf-python", self.python]
        return [self.data, *model, "--output", output]


def _written(script, python, **columns):
    """Folder of what the script wrote of some rows, and what it expects of that."""
    rows = io.BytesIO()
    np.savez(rows, **columns)
    writer = pathlib.Path(__file__).with_name(script)
    folder = written(python, writer, given={"rows.npz": rows.getvalue()})
    return folder, np.load(folder / "expected.npz")


@pytest.fixture(scope="session")
def rows():
    """600 rows: a key out of order, both classes, users beyond 32 bits, ragged genres."""
    random = np.random.default_rng(0)
    many = random.integers(0, 5, ROWS)
    ends = np.concatenate([[0], np.cumsum(many)]).astype(np.int32)
    return pa.table(
        {
            "id": [f"r{number:04d}" for number in random.permutation(ROWS)],
            "y": random.random(ROWS) < 0.4,
            "user": random.integers(-(10**12), 10**12, ROWS),
            "age": random.integers(10, 70, ROWS).astype(np.float32),
            "genres": pa.ListArray.from_arrays(ends, random.integers(0, 128, many.sum())),
        }
    )


@pytest.fixture(scope="session")
def data(rows, tmp_path_factory):
    """The rows as a Parquet file."""
    path = tmp_path_factory.mktemp("rows") / "rows.parquet"
    pyarrow.parquet.write_table(rows, path)
    return str(path)


@pytest.fixture(scope="session")
def tf2_models(rows):
    return Models(rows, forked_tensorflow(sys.executable))


@pytest.fixture(scope="session")
def tf1_models(rows):
    return Models(rows, forked_tensorflow(tf1_python()))


@pytest.fixture(params=["tf2_models", "tf1_models"])
def models(request):
    """Each TensorFlow's in turn."""
    return request.getfixturevalue(request.param)


@pytest.fixture(scope="session", params=["TensorFlow 2", "TensorFlow 1"])
def graphs(request, tmp_path_factory):
    """Each TensorFlow's in turn."""
    python = sys.executable if request.param == "TensorFlow 2" else tf1_python()
    return Graphs(tmp_path_factory.mktemp("graphs"), forked_tensorflow(python))
