"""Reading files into training batches: migrate.data against what people use, in one run.

    python -m benchmarks.input [--rows N] [--repeats N] [--batch N]

The rows: 8 columns of lists of ids below 2**20, 8 ids per row, and a label; seeds fixed. "one" has
one id in every list, "some" a Poisson number with mean 1. Each case reads all of its files into
KeyedJaggedTensors of 8 features (tf.data: into its own sparse tensors) and is checked by the sum of
its ids. The cases take turns; ratios are within a turn, median [least, most].

    ours        open_data with its defaults; shuffled: with Shuffle(), two windows or more
    to_pylist   pyarrow's batches to Python lists, flattened into a KeyedJaggedTensor
    dataset     a torch Dataset of rows with a DataLoader of no workers, the same collation
    tf.data     TFRecords, batched, parsed by tf.io.parse_example, AUTOTUNE, prefetch

Wall time is of everything with all threads; CPU time is that of the process, so that rows/s of CPU
time is what one core does. Text is read by the byte: MB/s of CPU time, opening included.
Without TensorFlow there is no tf.data.
"""

import functools
import itertools
import os
import pathlib
import tempfile

import numpy as np
import pyarrow as pa
import pyarrow.orc
import pyarrow.parquet as pq
import torch
from torchrec import KeyedJaggedTensor

from benchmarks.harness import records
from benchmarks.harness.options import options
from benchmarks.harness.turns import ratios, turns
from benchmarks.tables import head, row, spread, timed
from migrate.data import Column, Shuffle

FEATURES = [f"c{k}" for k in range(8)]
SCHEMA = [*(Column(name, "ids") for name in FEATURES), Column("click", "label")]
GROUP = 200_000  # rows of a row group
STRIPE = 4 << 20  # bytes by pyarrow's estimate, which are about as many rows
DELTA = {f"{name}.list.element": "DELTA_BINARY_PACKED" for name in FEATURES}
SLOW = 25  # the slow peers read one row in so many


def log(rows, lists):
    """The rows as a pyarrow.Table."""
    random = np.random.RandomState(0)
    columns = {}
    for name in FEATURES:
        lengths = np.ones(rows, int) if lists == "one" else random.poisson(1, rows)
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
        columns[name] = pa.ListArray.from_arrays(offsets, random.randint(0, 1 << 20, offsets[-1]))
    return pa.table({**columns, "click": random.randint(0, 2, rows).astype(np.float32)})


def write_text(table, path):
    """Tabs between fields, | between ids."""
    columns = [["|".join(map(str, ids)) for ids in table[name].to_pylist()] for name in FEATURES]
    clicks = [str(int(click)) for click in table["click"].to_pylist()]
    with open(path, "w") as file:
        file.write("\t".join([*FEATURES, "click"]) + "\n")
        file.writelines("\t".join(fields) + "\n" for fields in zip(*columns, clicks))


def write_records(table, path):
    """tf.train.Examples."""
    import tensorflow as tf

    lists = dict.fromkeys(FEATURES, np.int64)
    rows = (
        {name: np.array(row[name], lists.get(name, np.float32)) for name in row}
        for row in table.to_pylist()
    )
    records.write(tf, path, (records.serialized(tf, row) for row in rows))


def written(folder, rows, lists):
    """The files of one kind of lists, by name."""
    table, few = log(rows, lists), log(rows // SLOW, lists)
    files = {
        name: folder / f"{lists}.{name}" for name in ("parquet", "delta.parquet", "orc", "tsv")
    }
    pq.write_table(table, files["parquet"], row_group_size=GROUP)
    more = {"compression": "zstd", "use_dictionary": False, "column_encoding": DELTA}
    pq.write_table(table, files["delta.parquet"], row_group_size=GROUP, **more)
    pyarrow.orc.write_table(table, files["orc"], compression="zstd", stripe_size=STRIPE)
    write_text(table.slice(0, rows // 2), files["tsv"])
    files["few.parquet"] = folder / f"{lists}.few.parquet"
    pq.write_table(few, files["few.parquet"], row_group_size=GROUP)
    files["tfrecord"] = folder / f"{lists}.tfrecord"
    try:
        write_records(few, files["tfrecord"])
    except ImportError:
        del files["tfrecord"]
    return files


def collated(rows):
    """Rows as dicts of lists to a KeyedJaggedTensor and labels."""
    lists = [row[name] for name in FEATURES for row in rows]
    sparse = KeyedJaggedTensor(
        keys=FEATURES,
        values=torch.tensor(list(itertools.chain.from_iterable(lists)), dtype=torch.int64),
        lengths=torch.tensor([len(ids) for ids in lists], dtype=torch.int32),
    )
    return len(rows), sparse, torch.tensor([row["click"] for row in rows])


def summed(batches):
    """(rows, sum of the ids) of batches as `collated` makes them."""
    count = total = 0
    for rows, sparse, _ in batches:
        count += rows
        total += int(sparse.values().sum())
    return count, total


def to_pylist(path, batch):
    """(rows, sum of the ids)."""
    parts = pq.ParquetFile(path).iter_batches(batch)
    return summed(collated(part.to_pylist()) for part in parts)


class RowDataset(torch.utils.data.Dataset):
    """The rows of a file, held as an Arrow table."""

    def __init__(self, path):
        table = pq.read_table(path).combine_chunks()
        self._columns = {name: table[name].chunk(0) for name in table.column_names}

    def __len__(self):
        return len(self._columns["click"])

    def __getitem__(self, index):
        return {name: column[index].as_py() for name, column in self._columns.items()}


def dataset(path, batch):
    """(rows, sum of the ids)."""
    loader = torch.utils.data.DataLoader(RowDataset(path), batch, collate_fn=collated)
    return summed(loader)


def tf_data(path, batch):
    """(rows, sum of the ids)."""
    import tensorflow as tf

    features = dict.fromkeys(FEATURES, tf.io.VarLenFeature(tf.int64))
    features["click"] = tf.io.FixedLenFeature([], tf.float32)
    return records.read_by_tensorflow(path, features, batch)


def cases(files, batch):
    """By name: (what to call, the file)."""

    def ours(path, size, shuffle=None):
        return records.read_by_torch(path, SCHEMA, size, shuffle)

    found = {
        "ours, Parquet": (ours, "parquet"),
        "ours, Parquet, delta": (ours, "delta.parquet"),
        "ours, Parquet, delta, shuffled": (
            functools.partial(ours, shuffle=Shuffle()),
            "delta.parquet",
        ),
        "ours, ORC": (ours, "orc"),
        "ours, text": (ours, "tsv"),
        "to_pylist, Parquet": (to_pylist, "few.parquet"),
        "dataset, Parquet": (dataset, "few.parquet"),
        "tf.data, TFRecord": (tf_data, "tfrecord"),
    }
    return {name: (call, files[kind]) for name, (call, kind) in found.items() if kind in files}


def compare(folder, args, lists):
    """The table of one kind of lists, as Markdown."""
    files = written(folder, args.rows, lists)
    sums = {}

    def measured(name, call, path):
        wall, cpu, (rows, total) = timed(call, path, args.batch)
        assert sums.setdefault((path, rows), total) == total, name
        return rows / wall / 1e6, rows / cpu / 1e6

    sides = {
        name: functools.partial(measured, name, *case)
        for name, case in cases(files, args.batch).items()
    }
    found = turns(sides, args.repeats, uncounted=1)
    by_rows = {rows: total for (_, rows), total in sums.items()}
    assert all(by_rows[rows] == total for (_, rows), total in sums.items())
    print(f"\nLists with {lists}:\n")
    print(
        head("what | M rows/s, wall | M rows/s of CPU time | ours, Parquet / it: wall | CPU time")
    )
    base = found["ours, Parquet"]
    for name, figures in found.items():
        columns = [spread(column, "{:.3f}") for column in zip(*figures)]
        shares = (spread(ratios(*clock)) for clock in zip(zip(*base), zip(*figures)))
        print(row(name, *columns, *shares), flush=True)
    size, rows = files["tsv"].stat().st_size, args.rows // 2
    speeds = [millions * size / rows for _, millions in found["ours, text"]]
    print(f"\nText: {spread(speeds, '{:.0f}')} MB/s of CPU time.")


def main():
    """The command line."""
    args = options(__doc__, rows=2_000_000, repeats=3, batch=4096)
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        for lists in ("one", "some"):
            compare(pathlib.Path(folder), args, lists)


if __name__ == "__main__":
    main()
