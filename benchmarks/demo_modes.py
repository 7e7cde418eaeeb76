"""The demo's modes, repeated: the pace of semi-sync and the AUC of all against exact sync.

    python -m benchmarks.demo_modes [--repeats N] [--data FILE ...] [--json FILE] [--figure SVG]

Each repeat is one `semisync demo`, so its modes run one after another on the same machine.
Prints the speed of one core (`core_speed`) and Markdown tables: median [smallest, largest] of the
repeats, and the modes in the first of them, whose figure --figure keeps.
"""

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile

from benchmarks.core_speed import ROWS, core_milliseconds
from benchmarks.tables import head, row, spread, table

RATIOS = {"x async": "async", "x native-sync": "native-sync", "x sync": "sync"}
OTHERS = (
    "async",
    "native-sync",
    "semi-sync",
    "balanced",
)  # whose AUC is compared with that of sync


def run_demo(data, tf_python, folder):
    """One demo; returns its report.json."""
    command = [sys.executable, "-m", "semisync.cli", "demo", "--out", folder]
    command += ["--tf-python", tf_python]
    command += ["--data", data] if data else []
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with open(os.path.join(folder, "report.json")) as report:
        return json.load(report)


def repeated(name, reports):
    """One line of the table, and the raw figures behind it."""
    pace = [
        {mode: figures["batches_per_second"] for mode, figures in report["modes"].items()}
        for report in reports
    ]
    raw = {ratio: [p["semi-sync"] / p[peer] for p in pace] for ratio, peer in RATIOS.items()}
    raw["semi-sync batches/s"] = [p["semi-sync"] for p in pace]
    for mode in OTHERS:
        minus = [report["modes"][mode]["minus_sync"]["delta"] for report in reports]
        raw[f"AUC of {mode} minus sync"] = minus
    raw["|dAUC|"] = [abs(report["parity"]["delta"]) for report in reports]
    raw["seconds"] = [report["seconds"] for report in reports]
    cells = [
        name,
        spread(raw["semi-sync batches/s"], "{:.1f}"),
        *(spread(raw[ratio]) for ratio in RATIOS),
        *(spread(raw[f"AUC of {mode} minus sync"], "{:.4f}") for mode in OTHERS),
        "{:.1e}".format(max(raw["|dAUC|"])),
        spread(raw["seconds"], "{:.0f}"),
    ]
    return row(*cells), raw


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
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--data", nargs="*", default=[], help="besides the generated log")
    parser.add_argument("--tf-python", default=sys.executable)
    parser.add_argument("--json", help="where to write the raw figures")
    parser.add_argument("--figure", help="where to keep the figure of the first demo, an SVG")
    args = parser.parse_args()
    speed = f"one core sorts {ROWS:,} float64 in {core_milliseconds():.0f} ms"
    print(f"{platform.platform()}, {os.cpu_count()} CPUs; {speed}; repeats: {args.repeats}\n")
    heads = ["data", "semi-sync batches/s", *RATIOS, *(f"{mode} minus sync" for mode in OTHERS)]
    heads += ["largest dAUC of the conversion", "seconds"]
    print(head(heads))
    results, first = {}, None
    for data in [None, *args.data]:
        with tempfile.TemporaryDirectory() as folder:
            out = os.path.join(folder, "demo")
            reports = []
            for _ in range(args.repeats):
                reports.append(run_demo(data, args.tf_python, out))
                if args.figure and not first:
                    shutil.copyfile(os.path.join(out, "modes.svg"), args.figure)
                first = first or reports[0]
        name = reports[0]["data"]["name"]
        line, results[name] = repeated(name, reports)
        print(line, flush=True)
    print("\n" + modes_table(first))
    if args.json:
        with open(args.json, "w") as file:
            json.dump(results, file, indent=1)


if __name__ == "__main__":
    main()
