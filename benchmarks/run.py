"""Runs the benchmarks and keeps what they print: `make bench`.

    python -m benchmarks.run [--short] [--data interactions.parquet] [--to FOLDER] [NAME ...]

1. Each command of commands.py runs alone, one after the other. What it prints goes to
   benchmarks/results/NAME.json, with the machine and versions: see results.py.
2. `python -m benchmarks.pages` puts the tables into the pages.
3. --short runs each with little data, which shows that it works and measures nothing; the results
   go to out/bench.
4. What this machine cannot run is left out, and said: TensorFlow 1.15, the data set of ASSISTments,
   root for links of their own.

The rest of the machine should be idle: the load before each command is in its result. All in full
take a day, by far the most of it auc_evidence and batch_norm. Ends with 1 where a command failed.
"""

import argparse
import datetime
import json
import os
import pathlib
import shlex
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from benchmarks import results
from benchmarks.commands import BENCHMARKS, TF1
from benchmarks.core_speed import core_milliseconds

ROOT = pathlib.Path(__file__).resolve().parents[1]
DATA = "../shared/data/assist2017_pid/interactions.parquet"  # beside the checkout
PEERS = ".peers"  # where `make bench` installs benchmarks/requirements.txt
SHORT_RESULTS = "out/bench"
PACKAGES = [
    "numpy",
    "numba",
    "pyarrow",
    "torch",
    "torchrec",
    "fbgemm-gpu",
    "fbgemm-gpu-cpu",
    "torchmetrics",
    "torchdata",
    "tensorflow",
    "scikit-learn",
    "polars",
    "MLstatkit",
    "aiohttp",
    "kazoo",
]


def missing(benchmark, words, places):
    """Why it cannot run here, or None."""
    if ("{tf1}" in words or benchmark.interpreter == TF1) and not (ROOT / TF1).exists():
        return "there is no " + TF1
    if "{data}" in words and not (ROOT / places["data"]).exists():
        return f"{places['data']} is not there: name interactions.parquet by --data"
    if benchmark.needs_root and os.geteuid():
        return "it needs root"
    if benchmark.name == "simulator" and not (ROOT / words.format(**places)).exists():
        return "it takes the figures of pace_tf1, which come first"
    return None


def measured(benchmark, words, places, core):
    """The result of running it."""
    python = benchmark.interpreter or sys.executable
    environment = dict(os.environ, TF_CPP_MIN_LOG_LEVEL="3")
    if not benchmark.interpreter:  # the peers are built for this Python
        environment["PYTHONPATH"] = str(ROOT / PEERS)
    arguments = shlex.split(words.format(**places))
    machine, began = results.machine(core), time.time()
    done = subprocess.run(
        [python, "-W", "ignore", f"benchmarks/{benchmark.script}.py", *arguments],
        cwd=str(ROOT),
        env=environment,
        stdout=subprocess.PIPE,
        encoding="utf-8",
        check=True,
    )
    said, tables = results.parsed(done.stdout)
    if len(tables) > len(benchmark.tables):
        raise ValueError(f"it printed {len(tables)} tables, for {len(benchmark.tables)} names")
    shown = words.format(**{**places, "data": "interactions.parquet", "to": "out"})
    return {
        "schema": results.SCHEMA,
        "name": benchmark.name,
        "command": f"python benchmarks/{benchmark.script}.py {shown}".strip(),
        "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
        "seconds": round(time.time() - began),
        "machine": machine,
        "versions": versions(TF1 if "{tf1}" in words else python, environment),
        "said": said,
        "tables": dict(zip(benchmark.tables, tables)),
    }


def versions(python, environment):
    """Of Python and of `PACKAGES`, as that interpreter has them."""
    ask = "import platform; print(platform.python_version())"
    command = [python, "-W", "ignore", "-c", ask]
    found = {"Python": _said(command, environment).strip()}
    listed = json.loads(_said([python, "-m", "pip", "list", "--format", "json"], environment))
    have = {one["name"].lower().replace("_", "-"): one["version"] for one in listed}
    found.update((name, have[name.lower()]) for name in PACKAGES if name.lower() in have)
    return found


def _said(command, environment):
    return subprocess.run(
        command,
        cwd=str(ROOT),
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        encoding="utf-8",
        check=True,
    ).stdout


def main():
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    names = [benchmark.name for benchmark in BENCHMARKS]
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="by default all: " + " ".join(names)
    )
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--data", default=DATA)
    parser.add_argument("--to", metavar="FOLDER")
    args = parser.parse_args()
    unknown = set(args.names) - set(names)
    if unknown:
        parser.error(f"there is no {unknown.pop()}; there are: {' '.join(names)}")
    folder = ROOT / (args.to or (SHORT_RESULTS if args.short else results.FOLDER))
    folder.mkdir(parents=True, exist_ok=True)
    places = {"tf1": TF1, "data": args.data, "to": os.path.relpath(folder, ROOT)}
    core, failed = core_milliseconds(), False
    for benchmark in BENCHMARKS:
        if args.names and benchmark.name not in args.names:
            continue
        words = benchmark.short if args.short else benchmark.full
        reason = missing(benchmark, words, places)
        if reason:
            print(f"{benchmark.name} is left out: {reason}", flush=True)
            continue
        print(benchmark.name, end=": ", flush=True)
        try:
            result = measured(benchmark, words, places, core)
        except (subprocess.CalledProcessError, ValueError) as error:
            failed = True
            print(f"failed: {error}", flush=True)
            continue
        results.write(result, folder)
        print(f"{result['seconds']} s", flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
