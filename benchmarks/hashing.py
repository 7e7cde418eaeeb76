"""Speed of runtime's hashes and look-ups against TensorFlow's ops, in one run and one thread.

    python -m benchmarks.hashing [--values N ...] [--seconds S]

The peer is the TensorFlow of this Python, its ops called eagerly on tensors made before; ours get
Strings made before. Every result is compared. A cell is millions of values per second, and
TensorFlow's time through ours; seconds are CPU time, the least of several tries.
"""

import argparse
import collections
import functools
import os
import time

import numpy as np
import pyarrow
import torch

from benchmarks.tables import table, versions
from migrate import runtime
from migrate.runtime import Strings

BUCKETS = 1_000_003
PACKAGES = ("tensorflow", "torch", "numpy", "numba", "pyarrow")
VOCABULARY = 100_000


def ids(generator, count):
    """Integers of 1 to 19 digits."""
    digits = generator.integers(1, 20, count)
    return (generator.random(count) * 9.2 * 10.0 ** (digits - 1)).astype(np.int64)


def texts(values):
    return pyarrow.array(values).cast(pyarrow.large_string())


def cases(tf, count):
    """{what: (ours, TensorFlow's)}, functions without arguments."""
    generator = np.random.default_rng(0)
    numbers = ids(generator, count)
    words = texts(numbers % 200_000).to_numpy(zero_copy_only=False)
    words = pyarrow.array(np.char.add("word_", words.astype("U6")).tolist())
    sentences = pyarrow.array([os.urandom(100) for _ in range(min(count, 1000))])
    sentences = sentences.take(pyarrow.array(generator.integers(0, len(sentences), count)))
    hashed = tf.raw_ops.StringToHashBucketFast
    found = {}
    for what, column in (
        ("ids of 1 to 19 digits", texts(numbers)),
        ("words of 6 to 11 bytes", words),
        ("strings of 100 bytes", sentences),
    ):
        ours, theirs = Strings.of(column), tf.constant(column.to_pylist())
        found["hash bucket, " + what] = (
            functools.partial(runtime.string_to_hash_bucket_fast, ours, BUCKETS),
            functools.partial(hashed, input=theirs, num_buckets=BUCKETS),
        )
    torch_numbers, tf_numbers = torch.from_numpy(numbers), tf.constant(numbers)
    found["hash bucket of int64 (AsString and hash)"] = (
        lambda: runtime.integers_to_hash_bucket(torch_numbers, BUCKETS),
        lambda: hashed(input=tf.strings.as_string(tf_numbers), num_buckets=BUCKETS),
    )
    a, b = Strings.of(words, [count, 1]), tf.constant(words.to_pylist(), shape=[count, 1])
    torch_column, tf_column = torch_numbers[:, None], tf_numbers[:, None]
    found["hashed cross of a word and an int64"] = (
        lambda: runtime.sparse_cross([], [], [], [a, torch_column], True, BUCKETS)[1],
        lambda: tf.raw_ops.SparseCross(
            indices=[],
            values=[],
            shapes=[],
            dense_inputs=[b, tf_column],
            hashed_output=True,
            num_buckets=BUCKETS,
            hash_key=0xDECAFCAFFE,
            out_type=tf.int64,
            internal_type=tf.int64,
        )[1],
    )
    known = [f"word_{number}" for number in range(VOCABULARY)]
    looked_up = runtime.LookupTable(known, np.arange(VOCABULARY), -1)
    filled = tf.lookup.KeyValueTensorInitializer(known, np.arange(VOCABULARY))
    tf_table, ours, theirs = tf.lookup.StaticHashTable(filled, -1), a.squeeze([1]), b[:, 0]
    found[f"look-up among {VOCABULARY:,} words"] = (
        lambda: looked_up.find(ours),
        lambda: tf_table.lookup(theirs),
    )
    return found


def microseconds(call, seconds):
    """CPU time of one call, the least of five tries of `seconds` in all."""
    call()
    start = time.process_time()
    call()
    times = max(1, int(seconds / 5 / max(time.process_time() - start, 1e-6)))
    best = float("inf")
    for _ in range(5):
        start = time.process_time()
        for _ in range(times):
            call()
        best = min(best, (time.process_time() - start) / times)
    return 1e6 * best


def main():
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--values", type=int, nargs="*", default=[128, 1024, 10**6])
    parser.add_argument("--seconds", type=float, default=2.0)
    args = parser.parse_args()
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    torch.set_num_threads(1)
    print(versions(PACKAGES) + "\n")
    rows = collections.defaultdict(list)
    for count in args.values:
        for what, (ours, theirs) in cases(tf, count).items():
            assert np.array_equal(ours().numpy().ravel(), theirs().numpy().ravel()), what
            mine, peer = microseconds(ours, args.seconds), microseconds(theirs, args.seconds)
            rows[what].append(f"{count / mine:.1f} ({peer / mine:.2f})")
    columns = ["what", *(f"{count:,}" for count in args.values)]
    print(table(columns, [[what, *cells] for what, cells in rows.items()]))


if __name__ == "__main__":
    main()
