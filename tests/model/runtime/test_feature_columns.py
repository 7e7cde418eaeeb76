"""Feature columns of TensorFlow 1.15 and 2.x, made again of runtime's functions.

Each function here computes what one column's ops compute, as a converted graph would.
"""

import functools
import pathlib
import sys

import numpy as np
import pytest
import torch

from migrate import runtime
from migrate.runtime import LookupTable, Strings
from tests.model.runtime.same import assert_same
from tests.model.runtime.tensorflow_child import unpacked
from tests.support.require import tf1_python
from tests.support.written import written

BOUNDARIES = [-1.0, 0.0, 0.1, 7.25, 1000.0]
BESIDE = ("rows.py", "tensorflow_child.py")


@pytest.fixture(scope="session", params=["1.15", "2.x"])
def expected(request):
    """What a TensorFlow computed: a folder of write_expected.py."""
    python = tf1_python() if request.param == "1.15" else sys.executable
    writer = pathlib.Path(__file__).with_name("write_expected.py")
    return written(python, writer, beside=BESIDE)


def read(folder, name):
    return unpacked((folder / (name + ".npz")).read_bytes())


class Features:
    """The raw features, dense ones and as SparseTensors without "" and -1."""

    def __init__(self, folder):
        given = {
            name: Strings.of(array) if array.dtype == object else torch.from_numpy(array)
            for name, array in read(folder, "inputs").items()
        }
        parts = ("sparse_indices", "sparse_values", "sparse_shape")
        self._sparse = tuple(given.pop(name) for name in parts)
        self.dense = given
        self.vocabulary = str(folder / "vocabulary.txt")

    def sparse(self, name):
        if name == "sparse":
            return self._sparse
        values = self.dense[name]
        kept = values != (b"" if isinstance(values, Strings) else -1)
        return kept.nonzero(), values[kept], torch.tensor(values.shape)


def with_values(features, name, compute):
    indices, values, shape = features.sparse(name)
    return indices, compute(values), shape


def in_vocabulary(table, buckets, values):
    """Words that the table does not have fall into buckets behind its own."""
    found = table.find(values)
    if not buckets:
        return found
    others = runtime.string_to_hash_bucket_fast(values, buckets) + len(table)
    return torch.where(found == -1, others, found)


def of_list(words, buckets=0, default=-1):
    table = LookupTable(words, torch.arange(len(words)), default)
    return functools.partial(in_vocabulary, table, buckets)


def of_file(features, buckets=0, size=-1):
    table = LookupTable.from_text_file(features.vocabulary, vocab_size=size)
    return functools.partial(in_vocabulary, table, buckets)


def hash_words(count):
    return functools.partial(runtime.string_to_hash_bucket_fast, num_buckets=count)


def identity(features):
    return with_values(features, "small", lambda ids: torch.where((ids < 0) | (ids >= 50), 0, ids))


def bucketized(features):
    """The buckets of "price" as ids of a SparseTensor, those of its second value behind."""
    buckets = runtime.bucketize(features.dense["price"], BOUNDARIES).to(torch.int64)
    ids = buckets + (len(BOUNDARIES) + 1) * torch.arange(2)
    return torch.ones_like(ids).nonzero(), ids.reshape(-1), torch.tensor(ids.shape)


def crossed(sparse, dense, count, *key):
    indices, values, shapes = zip(*sparse) if sparse else ((), (), ())
    return runtime.sparse_cross(indices, values, shapes, dense, True, count, *key)


def sequence(features):
    indices, values, shape = with_values(features, "sparse", hash_words(10007))
    place = torch.zeros(len(indices), 1, dtype=torch.int64)
    return torch.cat([indices, place], 1), values, torch.cat([shape, torch.tensor([1])])


def indicator(features):
    indices, ids, shape = identity(features)
    dense = torch.zeros(int(shape[0]), 50)
    return dense.index_put((indices[:, 0], ids), torch.ones(len(ids)), accumulate=True)


WORDS = ["w1", "w2", "0", "a", "é"]
SPARSE = {
    "hashed_words": lambda f: with_values(f, "words", hash_words(10007)),
    "hashed_sparse": lambda f: with_values(f, "sparse", hash_words(10007)),
    "hashed_integers": lambda f: with_values(
        f, "id", lambda ids: runtime.integers_to_hash_bucket(ids, 1000003)
    ),
    "vocabulary_list": lambda f: with_values(f, "words", of_list(WORDS, 7)),
    "vocabulary_default": lambda f: with_values(f, "words", of_list(WORDS, 0, 2)),
    "vocabulary_numbers": lambda f: with_values(f, "small", of_list([3, 1, 4, 15, 9, 2, 6])),
    "vocabulary_file": lambda f: with_values(f, "words", of_file(f, 3)),
    "vocabulary_start": lambda f: with_values(f, "words", of_file(f, 0, 100)),
    "identity": identity,
    "crossed_raw": lambda f: crossed([], [f.dense["words"], f.dense["id"]], 1000003),
    "crossed_key": lambda f: crossed([], [f.dense["words"], f.dense["id"]], 1000003, 17),
    "crossed_order": lambda f: crossed([], [f.dense["id"], f.dense["words"]], 1000003),
    "crossed_columns": lambda f: crossed(
        [with_values(f, "words", of_list(["w1", "", "0", "a"])), identity(f)], [], 1000003
    ),
    "crossed_nested": lambda f: crossed(
        [bucketized(f), f.sparse("sparse")], [f.dense["word"], f.dense["small"]], 1000003
    ),
    "sequence": sequence,
}


@pytest.mark.parametrize("name", SPARSE)
def test_a_column_has_the_ids_that_tensorflow_gives_it(expected, name):
    ours = SPARSE[name](Features(expected))
    theirs = read(expected, name)
    assert_same(ours, [theirs["indices"], theirs["values"], theirs["shape"]])


def test_a_weighted_column_keeps_its_weights(expected):
    features, theirs = Features(expected), read(expected, "weighted")
    ours = with_values(features, "words", hash_words(997))
    assert_same(ours, [theirs["indices"], theirs["values"], theirs["shape"]])
    weights = features.dense["weight"]
    assert_same([weights[weights.isfinite()]], [theirs["weights"]])


def test_dense_columns_count_buckets_and_ids(expected):
    features = Features(expected)
    buckets = runtime.bucketize(features.dense["price"], BOUNDARIES).to(torch.int64)
    one_hot = torch.nn.functional.one_hot(buckets, len(BOUNDARIES) + 1).to(torch.float32)
    assert_same([one_hot], [read(expected, "bucketized")["dense"]])
    assert_same([indicator(features)], [read(expected, "indicator")["dense"]])


def test_the_features_have_what_columns_treat_specially(expected):
    given = read(expected, "inputs")
    assert (given["words"] == b"").any()
    assert (given["small"] == -1).any()
    assert np.isnan(given["price"]).any()
    assert (given["id"] == -(2**63)).any()
