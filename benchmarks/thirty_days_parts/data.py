"""The rows of a seed, a day at a time, in the order in which they are to be trained.

    day-DD.npz   for TensorFlow, whose Python may lack pyarrow: a column of each of FEATURES, the
                 last earlier answers as int16 [rows, BAG] padded with 0, label, key
    day-DD.parquet   the same rows as files of raw rows, in the order of the global batches that
                 TensorFlow trained: user is text, before a list

The features are those of `auc_evidence_parts.history`, under names without blanks.
"""

import os

import numpy as np

from benchmarks.auc_evidence_parts import data as answers_of

FEATURES = [  # in the order of `auc_evidence_parts.data`; user is hashed from text
    "user",
    "problem",
    "skill",
    "last_outcomes",
    "success_rate",
    "answers",
    "recent_success_rate",
    "skill_success_rate",
    "skill_last_outcomes",
    "problem_last_outcome",
    "previous_answer",
]


def name(folder, day, suffix):
    """The path of a day's file."""
    return os.path.join(folder, "day-{:02d}.{}".format(day, suffix))


def prepare(interactions, folder):
    """Writes the answers with their features, once for all seeds."""
    os.makedirs(folder)
    answers_of.prepare(interactions, folder)


def write_seed(prepared, folder, seed, plan):
    """Writes a seed's day-DD.npz of all days."""
    answers = answers_of.load(prepared)
    for day in range(plan.days):
        rows = answers_of.rows_of(answers, (day, day + 1))
        count = rows.stop - rows.start
        whole = min(count // plan.global_batch, plan.most) * plan.global_batch
        chosen = np.random.RandomState(day).permutation(count)[:whole]  # the same for every seed
        key = rows.start + np.random.RandomState(1000 * seed + day).permutation(chosen)
        columns = dict(zip(FEATURES, answers.fields[key].T))
        columns["before"], columns["label"] = answers.bags[key], answers.labels[key]
        np.savez(name(folder, day, "npz"), key=key, **columns)


def read(folder, day):
    """A day's columns."""
    with np.load(name(folder, day, "npz")) as file:
        return dict(file)


def write_parquet(columns, order, day, path):
    """Writes rows in an order, as `semisync train` reads them."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = {name: values[order] for name, values in columns.items()}
    before = columns.pop("before")
    there = before > 0
    offsets = np.concatenate([[0], np.cumsum(there.sum(1))]).astype(np.int32)
    user = columns.pop("user")
    table = {name: values.astype(np.int64) for name, values in columns.items()}
    table["user"] = ["user {}".format(one) for one in user]
    table["before"] = pa.ListArray.from_arrays(offsets, before[there].astype(np.int64))
    table["day"] = np.full(len(user), day)
    pq.write_table(pa.table(table), path)
