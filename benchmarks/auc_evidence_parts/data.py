"""The answers as a model reads them: a folder of .npy files that every process maps into memory.

    fields.npy   int16 [rows, fields]   single-valued features, each counted from 0
    bags.npy     int16 [rows, BAG]      the last earlier answers, see `history.bags`
    labels.npy   int8  [rows]           1 = answered correctly
    days.npy     int8  [rows]           0 to 29, not decreasing
    about.json   the names and sizes of the fields, the size of the bag's table

The row order is that of interactions.parquet: by day, then position in the history, then user.
"""

import json
import os
from collections import namedtuple

import numpy as np

from benchmarks.auc_evidence_parts import history

Answers = namedtuple("Answers", "fields bags labels days about")
ARRAYS = ("fields", "bags", "labels", "days")
DEFAULT = os.path.join(  # beside the checkout
    os.path.dirname(os.path.abspath(__file__)),
    "../../../shared/data/assist2017_pid/interactions.parquet",
)


def prepare(parquet, folder):
    """Reads the interactions, computes the history features, writes the folder."""
    import pyarrow.parquet as pq

    table = pq.read_table(parquet)
    names = ("user", "seq", "problem", "skill", "label", "day")
    columns = {name: table[name].to_numpy().astype(np.int64) for name in names}
    order = np.lexsort((columns["seq"], columns["user"]))
    user, problem, skill, label = (
        columns[name][order] for name in ("user", "problem", "skill", "label")
    )
    fields = {
        name: (values, values.max() + 1)
        for name, values in (("user", user), ("problem", problem), ("skill", skill))
    }
    fields.update(history.fields(user, problem, skill, label))
    about = {"fields": {name: int(size) for name, (_, size) in fields.items()}}
    about["bag"] = int(2 * problem.max() + 3)
    back = np.argsort(order)
    arrays = {
        "fields": np.stack([values for values, _ in fields.values()], axis=1)[back],
        "bags": history.bags(user, problem, label)[back],
    }
    for name, values in arrays.items():
        assert values.min() >= 0 and values.max() <= np.iinfo(np.int16).max, name
        np.save(os.path.join(folder, name + ".npy"), values.astype(np.int16))
    np.save(os.path.join(folder, "labels.npy"), columns["label"].astype(np.int8))
    np.save(os.path.join(folder, "days.npy"), columns["day"].astype(np.int8))
    with open(os.path.join(folder, "about.json"), "w") as file:
        json.dump(about, file)


def load(folder):
    """The Answers in a folder that `prepare` wrote; the large arrays are mapped, not read."""
    arrays = {name: np.load(os.path.join(folder, name + ".npy"), mmap_mode="r") for name in ARRAYS}
    with open(os.path.join(folder, "about.json")) as file:
        return Answers(about=json.load(file), **arrays)


def rows_of(answers, days):
    """The slice of the rows of days first <= day < last, given as (first, last)."""
    return slice(*(int(at) for at in np.searchsorted(answers.days, days)))
