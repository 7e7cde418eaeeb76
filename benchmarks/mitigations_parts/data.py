"""The two data sets, as ids into one table.

    assist     ASSISTments 2017 as `benchmarks.auc_evidence` reads it: 942,000 rows, 11 fields and a
               bag of 16 earlier answers
    sparrow    MovieLens ratings of SparrowRecSys, 22,440 rows in order of time, label: a rating of
               3.5 or more; 16 fields and a bag of 5 films that the user rated before

The others at hand carry no such comparison: Open Bandit's samples have 50 clicks each, those of
Criteo and Avazu at most 8,000 rows.
"""

import csv
import os
import tempfile
from typing import Dict, NamedTuple, Tuple

import numpy as np

from benchmarks.auc_evidence_parts import data as assist
from benchmarks.auc_evidence_parts import plan

SHARED = os.path.normpath(os.path.join(assist.DEFAULT, "../.."))
FILES = {
    "assist": assist.DEFAULT,
    "sparrow": os.path.join(SHARED, "sparrow_test_samples", "testSamples.csv"),
}
_GENRES = ("movieGenre1", "movieGenre2", "movieGenre3", "userGenre1", "userGenre2", "userGenre3")
_NUMBERS = (  # name, width of a bucket; 0: by powers of 2
    ("releaseYear", 5),
    ("movieRatingCount", 0),
    ("movieAvgRating", 0.2),
    ("movieRatingStddev", 0.1),
    ("userRatingCount", 0),
    ("userAvgReleaseYear", 5),
    ("userAvgRating", 0.2),
    ("userRatingStddev", 0.2),
)


class Rows(NamedTuple):
    """A data set.

    Attributes:
        ids: int32 [rows, fields], rows of the table.
        bags: int32 [rows, bag], rows of the table; `padding` where there are fewer.
        labels: float32 [rows].
        table: how many rows the table has.
        padding: the row of the table that stands for none.
        splits: {"test" | "validation": (slice to train on, slice to score)}.
    """

    ids: np.ndarray
    bags: np.ndarray
    labels: np.ndarray
    table: int
    padding: int
    splits: Dict[str, Tuple[slice, slice]]


def load(name, path=None):
    """The `Rows` of "assist" or "sparrow", from `path` or its usual place."""
    return {"assist": _assist, "sparrow": _sparrow}[name](path or FILES[name])


def _assist(path):
    with tempfile.TemporaryDirectory() as folder:
        assist.prepare(path, folder)
        answers = assist.load(folder)
        splits = {
            split: tuple(assist.rows_of(answers, days) for days in both)
            for split, both in plan.SPLITS.items()
        }
        sizes = list(answers.about["fields"].values())
        return _in_one_table(
            np.array(answers.fields), sizes, np.array(answers.bags), answers.about["bag"],
            np.array(answers.labels), splits,
        )  # fmt: skip


def _sparrow(path):
    with open(path, newline="") as file:
        rows = sorted(csv.DictReader(file), key=lambda row: int(row["timestamp"]))
    columns = [[row["movieId"] for row in rows], [row["userId"] for row in rows]]
    columns += [[row[name] for row in rows] for name in _GENRES]
    columns += [[_bucket(row[name], width) for row in rows] for name, width in _NUMBERS]
    numbered = [np.unique(column, return_inverse=True) for column in columns]
    fields = np.stack([inverse for _, inverse in numbered], 1)
    rated = [[row["userRatedMovie%d" % n] or "0" for n in range(1, 6)] for row in rows]
    bags = np.array(rated, np.int64)
    labels = np.array([row["label"] for row in rows], np.float32)
    cuts = [int(len(rows) * share) for share in (0.65, 0.8)]
    splits = {
        "validation": (slice(0, cuts[0]), slice(*cuts)),
        "test": (slice(0, cuts[1]), slice(cuts[1], len(rows))),
    }
    sizes = [len(values) for values, _ in numbered]
    return _in_one_table(fields, sizes, bags, int(bags.max()) + 1, labels, splits)


def _bucket(text, width):
    number = float(text or 0)
    return int(number / width) if width else int(np.log2(number + 1))


def _in_one_table(fields, sizes, bags, bag_size, labels, splits):
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    ids = (fields + offsets[:-1]).astype(np.int32)
    return Rows(
        ids=ids,
        bags=(bags + offsets[-1]).astype(np.int32),
        labels=labels.astype(np.float32),
        table=int(offsets[-1]) + bag_size,
        padding=int(offsets[-1]),
        splits=splits,
    )
