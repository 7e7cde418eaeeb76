"""Random rows through runtime and through TensorFlow: every bit must agree.

    python -m tests.model.runtime.fuzz [--rows 10000000] [--kinds ...] [--python PYTHON] [--seed 0]

PYTHON: the interpreter with TensorFlow; default: 1.15's, whose answers these are (2.x refuses white
space as a number, for one). Rows go through in chunks. Prints per kind the rows and how many of its
outputs' values differ, and ends with status 1 if any do.
"""

import argparse
import atexit
import functools
import pathlib
import shutil
import sys
import tempfile
import time

import numpy as np
import torch

from migrate import runtime
from migrate.runtime import Strings
from tests.model.runtime import rows
from tests.model.runtime.peer import tensorflow
from tests.support.require import fastest_tensorflow

CHUNK = 100_000
BUCKETS = 2**63 - 1  # leaves nearly every bit of a hash to compare
KEY = [0x0706050403020100, -3]
BOUNDARIES = [-1e9, -3.5, -1.0, 0.0, 0.1, 1.0, 1.0, 7.25, 16777216.0, 1e9]


def _hash(kind, function, **more):
    def compare(peer, strings):
        attributes = {"attr_" + name: value for name, value in more.items()}
        theirs = peer.ask(kind, strings=strings, attr_buckets=BUCKETS, **attributes)
        return [function(Strings.of(strings), BUCKETS, **more)], theirs

    return compare


def _hash_integers(peer, numbers):
    ours = runtime.integers_to_hash_bucket(torch.from_numpy(numbers), BUCKETS)
    return [ours], peer.ask("hash_integers", numbers=numbers, attr_buckets=BUCKETS)


def _printed(**how):
    def compare(peer, numbers):
        attributes = {"attr_" + name: value for name, value in how.items()}
        ours = runtime.as_string(torch.from_numpy(numbers), **how)
        return [ours], peer.ask("as_string", numbers=numbers, **attributes)

    return compare


def _read(dtype):
    def compare(peer, strings):
        ours = runtime.string_to_number(Strings.of(strings), getattr(torch, dtype))
        return [ours], peer.ask("to_number", strings=strings, attr_dtype=dtype)

    return compare


def _bucketize(peer, numbers):
    ours = runtime.bucketize(torch.from_numpy(numbers), BOUNDARIES)
    return [ours], peer.ask("bucketize", numbers=numbers, attr_boundaries=BOUNDARIES)


def _cross(hashed, hash_key=0xDECAFCAFFE, buckets=0):
    def compare(peer, columns):
        indices, values, shape, integers, words = columns
        ours = runtime.sparse_cross(
            [torch.from_numpy(indices)],
            [Strings.of(values)],
            [torch.from_numpy(shape)],
            [torch.from_numpy(integers), Strings.of(words)],
            hashed,
            buckets,
            hash_key,
        )
        theirs = peer.ask(
            "cross",
            indices=indices,
            values=values,
            shape=shape,
            integers=integers,
            words=words,
            attr_hashed=hashed,
            attr_buckets=buckets,
            attr_hash_key=hash_key,
        )
        return ours, theirs

    return compare


@functools.lru_cache(maxsize=None)
def _vocabulary_path():
    """A file of most of the words, which goes with this process."""
    folder = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, folder)
    known = dict.fromkeys(word for word in rows.words(np.random.default_rng(0), 5000) if word)
    path = pathlib.Path(folder, "words.txt")
    path.write_bytes(b"\n".join(known))
    return str(path)


def _vocabulary(peer, strings):
    path = _vocabulary_path()
    table = runtime.LookupTable.from_text_file(path)
    found = table.find(Strings.of(strings))
    others = runtime.string_to_hash_bucket_fast(Strings.of(strings), 10) + len(table)
    theirs = peer.ask("vocabulary", words=strings, attr_path=path, attr_buckets=10)
    return [torch.where(found == -1, others, found)], theirs


def _numbers_of_keys(peer, numbers):
    known = np.unique(np.random.default_rng(0).integers(-1000, 1000, 500)).tolist()
    values = (np.arange(len(known)) / 7).astype(np.float32).tolist()
    keys = numbers % 2000 - 1000
    ours = runtime.LookupTable(known, values, -0.5).find(torch.from_numpy(keys))
    theirs = peer.ask(
        "numbers_of_keys", keys=keys, attr_known=known, attr_values=values, attr_default=-0.5
    )
    return [ours], theirs


def _csv(peer, records):
    defaults = [torch.tensor([-1], dtype=torch.int32), torch.tensor([-1.5]), Strings.of(["none"])]
    ours = runtime.decode_csv(Strings.of(records), defaults, na_value="NA")
    return ours, peer.ask("csv", records=records)


def _examples(peer, serialized):
    types = {"f": torch.float32, "i": torch.int64, "s": Strings}
    fixed = {"f": [1, 3], "i": [], "s": [2]}
    defaults = {
        "f": torch.tensor([[0.5, 1.5, -1.0]]),
        "i": torch.tensor(-7),
        "s": Strings.of(["x", "y"]),
    }
    fillers = {"f": torch.tensor([0.0]), "i": torch.tensor([0]), "s": Strings.of([""])}
    parsed = runtime.parse_example(
        Strings.of(serialized),
        ["sparse_" + name for name in types],
        list(types.values()),
        [kind + name for kind in ("dense_", "long_") for name in types],
        [*defaults.values(), *fillers.values()],
        [*fixed.values(), *[[None, 2]] * 3],
    )
    sparse = zip(parsed.sparse_indices, parsed.sparse_values, parsed.sparse_shapes)
    ours = [*parsed.dense_values, *(tensor for column in sparse for tensor in column)]
    return ours, peer.ask("examples", serialized=serialized)


_hash_fast = _hash("hash_fast", runtime.string_to_hash_bucket_fast)

KINDS = {
    "hash bucket of strings": (rows.strings, _hash_fast),
    "hash bucket of words": (rows.words, _hash_fast),
    "Hash64 bucket of strings": (rows.strings, _hash("hash_old", runtime.string_to_hash_bucket)),
    "strong hash bucket of strings": (
        rows.strings,
        _hash("hash_strong", runtime.string_to_hash_bucket_strong, key=KEY),
    ),
    "hash bucket of integers": (rows.integers, _hash_integers),
    "integers as strings": (rows.integers, _printed()),
    "float32 as strings": (rows.singles, _printed()),
    "float64 as strings": (rows.doubles, _printed(precision=3, width=9, fill="0")),
    "strings to float32": (rows.decimals, _read("float32")),
    "strings to float64": (rows.decimals, _read("float64")),
    "strings to int64": (rows.integer_texts, _read("int64")),
    "bucketized float32": (rows.singles, _bucketize),
    "bucketized float64": (rows.doubles, _bucketize),
    "bucketized int64": (rows.integers, _bucketize),
    "hashed crosses": (rows.columns, _cross(True)),
    "hashed crosses with a key": (rows.columns, _cross(True, hash_key=17, buckets=1000003)),
    "crosses as strings": (rows.columns, _cross(False)),
    "vocabulary file": (rows.words, _vocabulary),
    "table of integers": (rows.integers, _numbers_of_keys),
    "CSV": (rows.records, _csv),
    "tf.train.Example": (rows.examples, _examples),
}


def differing(ours, theirs):
    """How many values differ, a wrong shape or data type counting as all."""
    wrong = 0
    assert len(ours) == len(theirs)
    for one, other in zip(ours, theirs):
        array = one.numpy()
        if array.shape != other.shape or array.dtype != other.dtype:
            wrong += max(array.size, 1)
        elif array.dtype == object:
            wrong += int((array != other).sum())
        elif array.dtype.kind == "f":  # -0 is not 0 here, and every NaN is like another
            nan = np.isnan(array) & np.isnan(other)
            bits = "u{}".format(array.itemsize)
            same = np.ascontiguousarray(array).view(bits) == np.ascontiguousarray(other).view(bits)
            wrong += int((~same & ~nan).sum())
        else:
            wrong += int((array != other).sum())
    return wrong


def run(peer, kind, count, seed=0, chunk=CHUNK):
    """How many values differ in `count` rows of a kind."""
    make, compare = KINDS[kind]
    generator = np.random.default_rng(seed)
    wrong = 0
    for start in range(0, count, chunk):
        wrong += differing(*compare(peer, make(generator, min(chunk, count - start))))
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--rows", type=int, default=10**7)
    parser.add_argument("--kinds", nargs="*", default=list(KINDS), choices=KINDS, metavar="KIND")
    parser.add_argument("--python", default=fastest_tensorflow())
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    print("| kind | rows | values that differ | s |\n|---|---|---|---|", flush=True)
    total = 0
    with tensorflow(args.python) as peer:
        for kind in args.kinds:
            start = time.monotonic()
            wrong = run(peer, kind, args.rows, args.seed)
            total += wrong
            took = time.monotonic() - start
            print(f"| {kind} | {args.rows:,} | {wrong} | {took:.0f} |", flush=True)
    sys.exit(total > 0)


if __name__ == "__main__":
    main()
