"""The rows of a seed, a day at a time, in the order in which they are to be trained.

day-DD.npz       for TensorFlow, whose Python may lack pyarrow: the columns of the log, its lists
                 [rows, most] padded with 0
day-DD.parquet   the same rows as files of raw rows, in the order of the global batches that
                 TensorFlow trained
"""

import os

import numpy as np


def name(folder, day, suffix):
    """The path of a day's file."""
    return os.path.join(folder, "day-{:02d}.{}".format(day, suffix))


def write_seed(prepared, folder, seed, plan):
    """Writes a seed's day-DD.npz of all days."""
    for day, columns in enumerate(plan.log.days(prepared, plan)):
        count = len(columns["key"])
        whole = min(count // plan.global_batch, plan.most) * plan.global_batch
        chosen = np.random.RandomState(day).permutation(count)[:whole]  # the same for every seed
        rows = np.random.RandomState(1000 * seed + day).permutation(chosen)
        np.savez(name(folder, day, "npz"), **{k: values[rows] for k, values in columns.items()})


def read(folder, day):
    """A day's columns."""
    with np.load(name(folder, day, "npz")) as file:
        return dict(file)


def sparse(values):
    """(indices [n, 2], values [n]) of lists [rows, most], without the zeros."""
    return np.argwhere(values != 0), values[values != 0]


def write_parquet(log, columns, order, day, path):
    """Writes rows in an order, as `semisync train` reads them."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = {}
    for column, values in columns.items():
        values = values[order]
        if column in log.LISTS:
            offsets = np.concatenate([[0], np.cumsum((values != 0).sum(1))]).astype(np.int32)
            flat = values[values != 0].astype(np.int64)
            table[column] = pa.ListArray.from_arrays(offsets, flat)
        else:
            table[column] = values.astype(np.int64)
    table["user"] = log.user(table["user"])
    table["day"] = np.full(len(order), day)
    pq.write_table(pa.table(table), path)
