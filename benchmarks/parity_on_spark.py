"""Parity on Spark against one machine, and against Spark's own evaluator, on the same Parquet.

    python -m benchmarks.parity_on_spark [--rows N ...] [--without CASE ...]

2 % positive rows, two models' float32 probabilities, 20 rows per user. Each case reads the files
and compares: the difference of both AUCs with its error, by users in the second line of a size, and
all figures of the report. --without leaves out a case, or 'by user'. Spark's
BinaryClassificationEvaluator, asked once per model, has no error and takes its AUC from about 1,000
points of the curve. Seconds of all processors together, of driver and executors, which are
processes of this machine; in parentheses those on the clock, which other load lengthens. The
session has started, and has compared once. Markdown to stdout.
"""

import pathlib
import tempfile
import time

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet

import parity
from benchmarks.harness.options import options
from benchmarks.parity import compared_in_blocks, scores
from benchmarks.tables import head, row
from parity.spark.session import start

_PIECE = 2_500_000
COLUMNS = ("label", "old", "new")


def write(folder, rows):
    """Parquet files of the rows."""
    for number, first in enumerate(range(0, rows, _PIECE)):
        count = min(_PIECE, rows - first)
        labels, old, new = scores(count, seed=number)
        users = np.arange(first, first + count) // 20
        table = pa.table({"label": labels.astype(np.int8), "old": old, "new": new, "user": users})
        pyarrow.parquet.write_table(table, folder / f"{number:04}.parquet")


def in_memory(folder, grouped):
    table = pyarrow.parquet.read_table(folder)
    label, old, new = (table[name].to_numpy() for name in COLUMNS)
    users = table["user"].to_numpy() if grouped else None
    return parity.compare(label, old, new, clusters=users)


def beyond_memory(folder, grouped):
    from parity.io.readers import ColumnNames

    names = ColumnNames(*COLUMNS, group="user" if grouped else None)
    return compared_in_blocks(str(folder), names, grouped)


def on_spark(session):
    def run(folder, grouped):
        rows = session.read.parquet(str(folder))
        return parity.spark.compare(rows, *COLUMNS, clusters="user" if grouped else None)

    return run


def evaluator(session):
    """Both AUCs by Spark's own evaluator."""

    def run(folder, grouped):
        from pyspark.ml.evaluation import BinaryClassificationEvaluator
        from pyspark.sql import functions as F

        rows = session.read.parquet(str(folder))
        rows = rows.select("label", *(F.col(name).cast("double") for name in COLUMNS[1:]))
        return [
            BinaryClassificationEvaluator(rawPredictionCol=name).evaluate(rows)
            for name in COLUMNS[1:]
        ]

    return run


def cpu():
    """Seconds so far of this process and those that it started, of Spark's among them."""
    me = psutil.Process()
    times = [process.cpu_times() for process in (me, *me.children(recursive=True))]
    return sum(one.user + one.system for one in times)


def timed(case, folder, grouped):
    """Seconds as the table has them, and what was found."""
    began, spent = time.perf_counter(), cpu()
    found = case(folder, grouped)
    return f"{cpu() - spent:.1f} ({time.perf_counter() - began:.0f})", found


def main():
    args = options(__doc__, rows=[10**6, 10**7], without=[])
    session = start(
        "local-cluster[2,1,2048]",
        ui_enabled="false",
        sql_shuffle_partitions="16",
        executor_memory="2g",
        driver_memory="2g",
    )
    cases = {
        "in memory": in_memory,
        "histograms": beyond_memory,
        "`parity.spark`": on_spark(session),
        "Spark's evaluator": evaluator(session),
    }
    with tempfile.TemporaryDirectory() as name:
        write(pathlib.Path(name), 10_000)
        cases["`parity.spark`"](pathlib.Path(name), True)
    print(head(["rows", "interval", *(f"{name}, s" for name in cases), "delta off by"]))
    for rows in args.rows:
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            write(folder, rows)
            for grouped in (False,) if "by user" in args.without else (False, True):
                done = {
                    case: timed(run, folder, grouped)
                    for case, run in cases.items()
                    if case not in args.without and not (grouped and case == "Spark's evaluator")
                }
                report(rows, grouped, cases, done)
    session.stop()


def report(rows, grouped, cases, done):
    """A line: the seconds, and how far the deltas are from that in memory, else on Spark."""
    exact = done.get("in memory", done["`parity.spark`"])[1]
    seconds = [done[case][0] if case in done else "" for case in cases]
    errors = []
    for case in list(cases)[1:]:
        if case in done:
            found = done[case][1]
            delta = found[1] - found[0] if isinstance(found, list) else found.delta
            errors.append(f"{abs(delta - exact.delta):.0e}")
    on_cluster = done["`parity.spark`"][1]
    assert abs(on_cluster.standard_error - exact.standard_error) < 1e-12
    users = "by user" if grouped else "of rows"
    print(row(f"{rows:,}", users, *seconds, ", ".join(errors)), flush=True)


if __name__ == "__main__":
    main()
