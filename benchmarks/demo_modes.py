"""One `semisync demo`: the table of its modes.

    python -m benchmarks.demo_modes [--tf-python PYTHON] [--figure SVG]

Its modes run one after another on the same machine. --figure keeps the demo's own figure of them.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile

from benchmarks.harness.options import options
from benchmarks.tables import table

TITLES = {
    "async": "asynchronous",
    "native-sync": "`SyncReplicasOptimizer`",
    "semi-sync": "semi-sync",
    "balanced": "balanced",
    "sync": "exact sync",
}


def modes_table(report):
    """The modes of one demo, as Markdown."""
    columns = (
        "mode | batches/s | x asynchronous | mean staleness, steps | AUC "
        "| minus exact sync, 95 % interval of the rows"
    )
    lines = []
    base = report["modes"]["async"]["batches_per_second"]
    for mode, title in TITLES.items():
        figures = report["modes"][mode]
        pace, minus = figures["batches_per_second"], figures.get("minus_sync")
        cells = [title, f"{pace:.1f}", f"{pace / base:.2f}", f"{figures['staleness']['mean']:.2f}"]
        cells.append(f"{figures['auc']:.4f}")
        interval = "{delta:+.4f}, {low:+.4f} to {high:+.4f}"
        cells.append(interval.format(**minus) if minus else "")
        lines.append(cells)
    return table(columns, lines)


def main():
    """The command line."""
    args = options(__doc__, tf_python=sys.executable, figure=str)
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "demo")
        command = [sys.executable, "-m", "semisync.cli", "demo", "--out", out]
        subprocess.run([*command, "--tf-python", args.tf_python], check=True, stdout=sys.stderr)
        with open(os.path.join(out, "report.json"), encoding="utf-8") as report:
            print(modes_table(json.load(report)))
        if args.figure:
            shutil.copyfile(os.path.join(out, "modes.svg"), args.figure)


if __name__ == "__main__":
    main()
