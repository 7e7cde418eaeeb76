"""Speed of runtime's hashes and look-ups against TensorFlow's ops, in one run and one thread.

    python -m benchmarks.hashing [--values N ...] [--seconds S]

The peer is the TensorFlow of this Python, its ops called eagerly on tensors made before; ours get
Strings made before. Every result is compared. "NumPy" is the same hash vectorised, for strings of
at most 16 bytes: what runtime would have without numba. Microseconds per call are CPU time, the
least of several tries; million values per second follow from them.
"""

import argparse
import os
import time

import numpy as np
import pyarrow
import torch

from benchmarks.tables import head, row, versions
from migrate import runtime
from migrate.runtime import Strings

BUCKETS = 1_000_003
PACKAGES = ("tensorflow", "torch", "numpy", "numba", "pyarrow")
VOCABULARY = 100_000


def _u(number):
    return np.uint64(number)


def numpy_hash(strings):
    """Fingerprint64 of strings of 1 to 16 bytes in vectorised NumPy, and their buckets."""
    data = strings.data
    eight, four = (
        np.ndarray((len(data) - size + 1,), f"<u{size}", data.data, strides=(1,)) for size in (8, 4)
    )
    k0, k2 = _u(0xC3A5C85C97CB3127), _u(0x9AE16A3B2F90404F)

    def rotated(value, bits):
        return (value >> _u(bits)) | (value << _u(64 - bits))

    def mixed(value):
        return value ^ (value >> _u(47))

    def pair(first, second, multiplier):
        a = mixed((first ^ second) * multiplier)
        return mixed((second ^ a) * multiplier) * multiplier

    def block(starts, lengths):
        out = np.empty(len(starts), np.uint64)
        for low, high in ((1, 3), (4, 7), (8, 16)):
            where = np.flatnonzero((lengths >= low) & (lengths <= high))
            start, length = starts[where], lengths[where]
            size = length.astype(np.uint64)
            multiplier = k2 + size * _u(2)
            if low == 8:
                a, b = eight[start] + k2, eight[start + length - 8]
                c = rotated(b, 37) * multiplier + a
                out[where] = pair(c, (rotated(a, 25) + b) * multiplier, multiplier)
            elif low == 4:
                a, b = four[start].astype(np.uint64), four[start + length - 4].astype(np.uint64)
                out[where] = pair(size + (a << _u(3)), b, multiplier)
            else:
                first, middle, last = (
                    data[place].astype(np.uint64)
                    for place in (start, start + (length >> 1), start + length - 1)
                )
                y, z = first + (middle << _u(8)), size + (last << _u(2))
                out[where] = mixed(y * k2 ^ z * k0) * k2
        return (out % _u(BUCKETS)).astype(np.int64)

    starts, lengths = strings.offsets[:-1], np.diff(strings.offsets)
    step = 8192
    blocks = [
        block(starts[at : at + step], lengths[at : at + step]) for at in range(0, len(starts), step)
    ]
    return torch.from_numpy(np.concatenate(blocks))


def ids(generator, count):
    """Integers of 1 to 19 digits."""
    digits = generator.integers(1, 20, count)
    return (generator.random(count) * 9.2 * 10.0 ** (digits - 1)).astype(np.int64)


def texts(values):
    return pyarrow.array(values).cast(pyarrow.large_string())


def cases(tf, count):
    """(what, ours, TensorFlow's, NumPy's or None) as functions without arguments."""
    generator = np.random.default_rng(0)
    numbers = ids(generator, count)
    words = texts(numbers % 200_000).to_numpy(zero_copy_only=False)
    words = pyarrow.array(np.char.add("word_", words.astype("U6")).tolist())
    sentences = pyarrow.array([os.urandom(100) for _ in range(min(count, 1000))])
    sentences = sentences.take(pyarrow.array(generator.integers(0, len(sentences), count)))
    hashed = tf.raw_ops.StringToHashBucketFast
    for what, column in (
        ("ids of 1 to 19 digits", texts(numbers)),
        ("words of 6 to 11 bytes", words),
        ("strings of 100 bytes", sentences),
    ):
        ours, theirs = Strings.of(column), tf.constant(column.to_pylist())
        short = int(np.diff(ours.offsets).max()) <= 16
        yield (
            f"hash bucket, {what}",
            lambda ours=ours: runtime.string_to_hash_bucket_fast(ours, BUCKETS),
            lambda theirs=theirs: hashed(input=theirs, num_buckets=BUCKETS),
            (lambda ours=ours: numpy_hash(ours)) if short else None,
        )
    torch_numbers, tf_numbers = torch.from_numpy(numbers), tf.constant(numbers)
    yield (
        "hash bucket of int64 (AsString and hash)",
        lambda: runtime.integers_to_hash_bucket(torch_numbers, BUCKETS),
        lambda: hashed(input=tf.strings.as_string(tf_numbers), num_buckets=BUCKETS),
        None,
    )
    a, b = Strings.of(words, [count, 1]), tf.constant(words.to_pylist(), shape=[count, 1])
    torch_column, tf_column = torch_numbers[:, None], tf_numbers[:, None]
    no = {"indices": [], "values": [], "shapes": []}
    yield (
        "hashed cross of a word and an int64",
        lambda: runtime.sparse_cross([], [], [], [a, torch_column], True, BUCKETS)[1],
        lambda: tf.raw_ops.SparseCross(
            **no,
            dense_inputs=[b, tf_column],
            hashed_output=True,
            num_buckets=BUCKETS,
            hash_key=0xDECAFCAFFE,
            out_type=tf.int64,
            internal_type=tf.int64,
        )[1],
        None,
    )
    known = [f"word_{number}" for number in range(VOCABULARY)]
    table = runtime.LookupTable(known, np.arange(VOCABULARY), -1)
    filled = tf.lookup.KeyValueTensorInitializer(known, np.arange(VOCABULARY))
    tf_table, ours, theirs = tf.lookup.StaticHashTable(filled, -1), a.squeeze([1]), b[:, 0]
    yield (
        f"look-up among {VOCABULARY:,} words",
        lambda: table.find(ours),
        lambda: tf_table.lookup(theirs),
        None,
    )


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
    print(
        head("what | values per call | M/s | µs | TensorFlow, µs | TensorFlow / ours | NumPy, µs")
    )
    for count in args.values:
        for what, ours, theirs, vectorised in cases(tf, count):
            assert np.array_equal(ours().numpy().ravel(), theirs().numpy().ravel()), what
            mine, peer = microseconds(ours, args.seconds), microseconds(theirs, args.seconds)
            third = "-"
            if vectorised:
                assert torch.equal(vectorised(), ours()), what
                third = f"{microseconds(vectorised, args.seconds):.1f}"
            cells = [what, f"{count:,}", *map("{:.1f}".format, (count / mine, mine, peer))]
            print(row(*cells, f"{peer / mine:.2f}", third), flush=True)


if __name__ == "__main__":
    main()
