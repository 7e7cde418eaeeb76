"""Parsing tf.train.Example and reading TFRecord files: ours against TensorFlow's, in one run.

    python -m benchmarks.examples [--rows N] [--repeats N]

A row has 39 features, as the rows of Criteo's logs: 13 floats and 26 more, seeds fixed. "ids" are
integers below 2**20, "words" are text of 8 bytes, "lists" hold a Poisson number of ids with mean 2.

    parsing   runtime.parse_example and tf.io.parse_example, one batch again and again; the sparse
              ones give indices, values and shapes. Every output is compared.
    reading   open_data with its defaults, and a TFRecordDataset in batches, parsed by
              tf.io.parse_example, AUTOTUNE, prefetch; checked by the sum of the ids

Both sides take turns, TensorFlow with its own threads. Thousands of rows a second of wall time and
of the process's CPU time; ratios are within a turn; all are medians [least, most] of the turns.
"""

import functools
import gzip
import os
import pathlib
import tempfile

import numpy as np
import torch

from benchmarks.harness import records
from benchmarks.harness.options import options
from benchmarks.harness.turns import ratios, turns
from benchmarks.tables import head, row, spread, timed
from migrate import runtime
from migrate.data import Column
from migrate.runtime import Strings

FLOATS = [f"I{k}" for k in range(13)]
OTHERS = [f"C{k}" for k in range(26)]
SIZES = (512, 4096)


def examples(tf, kind, rows):
    """Serialized Examples whose last 26 features are ids, words or lists."""
    random, found = np.random.RandomState(0), []
    for _ in range(rows):
        features = dict(zip(FLOATS, random.rand(len(FLOATS))))
        for name in OTHERS:
            values = random.randint(0, 1 << 20, random.poisson(2) if kind == "lists" else 1)
            words = kind == "words"
            features[name] = np.array([b"%08d" % value for value in values]) if words else values
        found.append(records.serialized(tf, features))
    return found


def parsers(tf, kind, sparse, serialized):
    """Ours and TensorFlow's, each a function without arguments that gives arrays."""
    dtype, own = (tf.string, Strings) if kind == "words" else (tf.int64, torch.int64)
    features = {name: tf.io.FixedLenFeature([], tf.float32) for name in FLOATS}
    for name in OTHERS:
        features[name] = tf.io.VarLenFeature(dtype) if sparse else tf.io.FixedLenFeature([], dtype)
    batch = tf.constant(serialized)
    graph = tf.function(lambda given: tf.io.parse_example(given, features))
    strings = Strings.of(np.array(serialized, object))
    none = [torch.tensor([])] * len(FLOATS)
    of_others = Strings.of([]) if kind == "words" else torch.tensor([], dtype=torch.int64)
    if sparse:
        asked = (OTHERS, [own] * len(OTHERS), FLOATS, none, [[]] * len(FLOATS))
    else:
        every = [*none, *[of_others] * len(OTHERS)]
        asked = ((), (), [*FLOATS, *OTHERS], every, [[]] * len(every))

    def ours():
        found = runtime.parse_example(strings, *asked)
        sparse_ones = zip(found.sparse_indices, found.sparse_values, found.sparse_shapes)
        return [*found.dense_values, *(part for one in sparse_ones for part in one)]

    def theirs():
        found = graph(batch)
        dense = [found[name] for name in ([*FLOATS] if sparse else [*FLOATS, *OTHERS])]
        parts = [found[name] for name in OTHERS] if sparse else []
        return [*dense, *(x for one in parts for x in (one.indices, one.values, one.dense_shape))]

    for one, other in zip(ours(), theirs()):
        assert np.array_equal(one.numpy(), other.numpy())
    return ours, theirs


def readers(tf, path):
    """Ours and TensorFlow's, each a function that gives rows and the sum of the ids."""
    schema = [
        *(Column(name, "dense") for name in FLOATS),
        *(Column(name, "ids") for name in OTHERS),
    ]
    features = dict.fromkeys(FLOATS, tf.io.FixedLenFeature([], tf.float32))
    features.update(dict.fromkeys(OTHERS, tf.io.VarLenFeature(tf.int64)))
    ours = functools.partial(records.read_by_torch, path, schema, 4096)
    theirs = functools.partial(records.read_by_tensorflow, path, features, 4096)
    assert ours() == theirs()
    return ours, theirs


COLUMNS = (
    "ours, k rows/s | of CPU time | TensorFlow, k rows/s | of CPU time "
    "| ours / TensorFlow | of CPU time"
)


def compare(what, rows, sides, repeats, times=1):
    """Prints a row of a table, of calls with `rows` each, timed `times` together."""

    def several(side):
        return lambda: timed(lambda: [side() for _ in range(times)])[:2]

    found = turns({number: several(side) for number, side in enumerate(sides)}, repeats)
    clocks = [list(zip(*found[side])) for side in range(2)]  # wall and CPU of each side
    speeds = [
        spread((times * rows / one / 1e3 for one in seconds), "{:.0f}")
        for clock in clocks
        for seconds in clock
    ]
    shares = (spread(ratios(theirs, ours)) for ours, theirs in zip(*clocks))
    print(row(what, *speeds, *shares), flush=True)


def main():
    """The command line."""
    args = options(__doc__, rows=100_000, repeats=15)
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    import tensorflow as tf

    torch.set_num_threads(1)
    print(head("parsing | " + COLUMNS))
    for kind, sparse, what in (
        ("ids", False, "ids"),
        ("ids", True, "ids, sparse"),
        ("words", False, "words"),
        ("lists", True, "lists, sparse"),
    ):
        for size in SIZES:
            sides = parsers(tf, kind, sparse, examples(tf, kind, size))
            compare(f"{what}; {size:,} a batch", size, sides, args.repeats, 8192 // size)
    print("\n" + head("reading | " + COLUMNS))
    with tempfile.TemporaryDirectory() as folder:
        for kind, what in (("ids", "ids"), ("lists", "lists")):
            path = pathlib.Path(folder) / f"{kind}.tfrecord"
            records.write(tf, path, examples(tf, kind, args.rows))
            compare(what, args.rows, readers(tf, path), max(1, args.repeats // 3))
            packed = path.with_suffix(".tfrecord.gz")
            packed.write_bytes(gzip.compress(path.read_bytes(), 1))
            compare(f"{what}, gzip", args.rows, readers(tf, packed), max(1, args.repeats // 3))


if __name__ == "__main__":
    main()
