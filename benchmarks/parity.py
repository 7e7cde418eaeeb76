"""Speed of parity's AUC and comparison against its peers, each in one run and one thread.

    python -m benchmarks.parity [--rows N ...] [--parquet N ...] [--repeats R]

Peers that are not installed are left out, which the last line says; `make bench` installs those of
benchmarks/requirements.txt.

2 % positive rows, two models' float32 probabilities. Seconds are CPU time, which for one thread
equals the time on an idle machine, so that other load matters less. A peer that exceeds the time
limit at one size is left out of the larger ones. Progress goes to stderr, Markdown to stdout.
"""

import os
import statistics
import sys
import tempfile
import time

import numpy as np

import parity
from benchmarks.harness.apart import apart
from benchmarks.harness.options import options
from benchmarks.harness.usage import memory
from benchmarks.tables import head, row, spread

PATIENCE = 20.0  # seconds; a slower peer is not tried on more rows
_CHUNK = 5_000_000


def scores(rows, seed=0):
    """bool labels and two models' float32 probabilities."""
    rng = np.random.default_rng(seed)
    labels = rng.random(rows, np.float32) < 0.02
    logits = rng.standard_normal(rows, np.float32) + labels - 4
    new = logits + 0.05 * rng.standard_normal(rows, np.float32)
    old, new = ((1 / (1 + np.exp(-values))).astype(np.float32) for values in (logits, new))
    return labels, old, new


def sklearn_auc(labels, old, new):
    from sklearn.metrics import roc_auc_score

    return lambda: roc_auc_score(labels, old)


def torchmetrics_auc(labels, old, new):
    import torch
    from torchmetrics.functional.classification import binary_auroc

    torch.set_num_threads(1)
    target, values = torch.from_numpy(labels.astype(np.int64)), torch.from_numpy(old)
    return lambda: float(binary_auroc(values, target, thresholds=None))


def polars_auc(labels, old, new):
    """The rank-sum formula in polars, which has no AUC of its own."""
    import polars

    frame = polars.DataFrame({"y": labels, "p": old})
    positives = int(labels.sum())
    negatives = len(labels) - positives

    def run():
        ranks = frame.select(polars.col("p").rank("average").filter(polars.col("y")).sum()).item()
        return (ranks - positives * (positives + 1) / 2) / (positives * negatives)

    return run


def mlstatkit_delong(labels, old, new):
    from MLstatkit import Delong_test

    target = labels.astype(int)
    return lambda: Delong_test(target, old, new)


def own_delong(labels, old, new):
    """Paired DeLong alone: both AUCs and the standard error of their difference."""
    from parity.stats.delong import spread
    from parity.stats.roc import rank

    def run():
        one, two = (rank(values, labels, None) for values in (old, new))
        moved = two.placements() - one.placements()
        return spread(moved, two.area() - one.area(), labels).standard_error

    return run


CASES = {
    "exact AUC": {
        "parity.auc": lambda labels, old, new: lambda: parity.auc(labels, old),
        "sklearn roc_auc_score": sklearn_auc,
        "torchmetrics binary_auroc": torchmetrics_auc,
        "polars rank": polars_auc,
    },
    "paired DeLong": {"parity": own_delong, "MLstatkit Delong_test": mlstatkit_delong},
}


def measure(call, repeats):
    """Seconds of up to `repeats` calls each, after an uncounted one; a slow call is made once."""
    took = []
    for attempt in range(repeats + 1):
        start = time.process_time()
        call()
        took.append(time.process_time() - start)
        if attempt and sum(took) > PATIENCE:
            break
    return took[1:] if len(took) > 1 else took


def tables(sizes, repeats, missing):
    """Yields Markdown rows: case, rows, implementation, seconds, ratio to parity.

    Args:
        missing: a list that gets the implementations that cannot be imported.
    """
    slow = set()
    for rows in sizes:
        columns = scores(rows)
        for case, implementations in CASES.items():
            ours = None
            for name, make in implementations.items():
                if name in slow:
                    continue
                try:
                    call = make(*columns)
                except ImportError as error:
                    missing.append(f"{name} ({error})")
                    slow.add(name)
                    continue
                print(f"{case}, {rows:,} rows, {name}", file=sys.stderr)
                took = measure(call, repeats)
                middle = statistics.median(took)
                ours = ours or middle
                # The next size has ten times the rows.
                if middle > PATIENCE / 10 and ours != middle:
                    slow.add(name)
                ratio = f"{middle / ours:.1f}"
                yield row(case, f"{rows:,}", name, spread(took, "{:.3g}"), ratio)


def write_parquet(path, rows):
    """Label and two scores, snappy, written in pieces."""
    import pyarrow
    import pyarrow.parquet

    schema = pyarrow.schema([("y", "bool"), ("a", "float32"), ("b", "float32")])
    with pyarrow.parquet.ParquetWriter(path, schema) as writer:
        for start in range(0, rows, _CHUNK):
            columns = scores(min(_CHUNK, rows - start), seed=start)
            writer.write_table(pyarrow.table(dict(zip("yab", columns)), schema))


def compared_in_blocks(path, names, by_user=False):
    """Compares block by block, as `semisync parity` does with data beyond memory."""
    from parity.histogram.beyond_memory import compare_blocks
    from parity.histogram.counts import Kind
    from parity.io.blocks import blocks

    return compare_blocks(blocks(path, names), Kind(), 5e-4, by_user)


def counted(path):
    """(CPU seconds, peak MiB, the bound) of a comparison in one thread."""
    import pyarrow

    from parity.io.readers import ColumnNames

    pyarrow.set_cpu_count(1)
    start = time.process_time()
    comparison = compared_in_blocks(path, ColumnNames("y", "a", "b"))
    return time.process_time() - start, memory("VmHWM"), comparison.bound


def from_parquet(rows, repeats):
    """A Markdown row of the comparison, end to end in processes of its own."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "scores.parquet")
        write_parquet(path, rows)
        took, peaks, bounds = zip(*(apart(counted, path) for _ in range(repeats)))
    pace = rows / statistics.median(took) / 1e6
    return row(
        f"{rows:,}", spread(took, "{:.3g}"), f"{pace:.1f}", f"{max(peaks):.0f}", f"{bounds[0]:.1e}"
    )


def main():
    """The command line."""
    args = options(__doc__, rows=[10**6, 10**7, 10**8], parquet=[10**7, 10**8], repeats=5)
    os.environ["POLARS_MAX_THREADS"] = "1"  # read when polars is imported
    print(head("what | rows | implementation | s, median [least, most] | x parity"))
    missing = []
    for line in tables(args.rows, args.repeats, missing):
        print(line, flush=True)
    print()
    print(head("Parquet rows | s, median [least, most] | M rows/s | peak MB | certified bound"))
    for rows in args.parquet:
        print(from_parquet(rows, args.repeats), flush=True)
    if missing:
        print("\nLeft out: " + ", ".join(missing))


if __name__ == "__main__":
    main()
