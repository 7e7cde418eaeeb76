"""Runs the benchmarks and keeps what they print: `make bench`.

    python -m benchmarks.run [--short] [--since DATE] [--data interactions.parquet] [--to FOLDER]
                             [NAME ...]
    python -m benchmarks.run --list

1. Each command of commands.py runs alone, one after the other. What it prints goes to
   benchmarks/results/NAME.json, with the machine and versions: see results.py.
2. `python -m benchmarks.pages` puts the tables into the pages.
3. --short runs each with little data, which shows that it works and measures nothing; the results
   go to out/bench.
4. --since goes on with a run that was interrupted: what has been measured since is left out.
5. What this machine cannot run is left out, and said: TensorFlow 1.15, the data set of ASSISTments,
   a ZooKeeper server.
6. --list says of each what it measures, about how long it takes, what it needs, and its command.

The rest of the machine should be idle: the load before each command is in its result. All in full
take a day, by far the most of it auc_evidence and sequences. Ends with 1 where a command failed.
"""

import argparse
import ast
import datetime
import json
import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import time

from benchmarks import results
from benchmarks.commands import BENCHMARKS, TF1, TFRA
from benchmarks.core_speed import core_milliseconds
from tests.support.zookeeper import FOLDERS

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
    "tensorflow",
    "tensorflow-recommenders-addons",
    "scikit-learn",
    "polars",
    "MLstatkit",
    "aiohttp",
    "kazoo",
    "pyspark",
]

VERSIONS = """
import json, platform, sys, pkg_resources
found = {"Python": platform.python_version()}
for name in sys.argv[1:]:
    try:
        found[name] = pkg_resources.get_distribution(name).version
    except pkg_resources.DistributionNotFound:
        pass
print(json.dumps(found))
"""


def needs(benchmark, words, places):
    """{what it needs beside .venv: whether it is here}."""
    found = {}
    if "{tf1}" in words or benchmark.interpreter == TF1:
        found[TF1] = (ROOT / TF1).exists()
    if "{tfra}" in words:
        found[TFRA] = (ROOT / TFRA).exists()
    if "{data}" in words:
        found[f"{places['data']}, or --data"] = (ROOT / places["data"]).exists()
    found.update((name, (ROOT / name).exists()) for name in benchmark.needs_files)
    if benchmark.needs_java:
        found["Java"] = bool(shutil.which("java"))
    if benchmark.needs_zookeeper:
        found["ZooKeeper, by `make zookeeper`"] = zookeeper_is_here()
    if benchmark.name == "simulator":
        found["the figures of pace_tf1"] = (ROOT / words.split()[0].format(**places)).exists()
    return found


def zookeeper_is_here():
    """Whether there are Java and ZooKeeper's jars."""
    return bool(shutil.which("java")) and any((f / "zookeeper.jar").exists() for f in FOLDERS)


def missing(benchmark, words, places):
    """Why it cannot run here, or None."""
    absent = [what for what, here in needs(benchmark, words, places).items() if not here]
    return "it needs " + " and ".join(absent) if absent else None


def measured_since(name, folder, date):
    """Why it need not run again: it was measured that day or later. Else None."""
    try:
        kept = results.read(name, folder)["date"]
    except FileNotFoundError:
        return None
    return f"it was measured on {kept}" if kept >= date.isoformat() else None


def listed(benchmark, words, places):
    """A benchmark in a few lines: what it measures, takes and needs, and its command."""
    script = ROOT / "benchmarks" / (benchmark.script + ".py")
    measures = ast.get_docstring(ast.parse(script.read_text(encoding="utf-8"))).split("\n")[0]
    wanted = "; ".join(
        what if here else what + " (not here)"
        for what, here in needs(benchmark, words, places).items()
    )
    lines = [f"{benchmark.name}: {benchmark.takes}", f"  {measures}"]
    if wanted:
        lines.append("  needs " + wanted)
    return "\n".join([*lines, "  " + command(benchmark, words)])


def command(benchmark, words):
    """The command that repeats it by hand."""
    shown = words.format(tf1=TF1, tfra=TFRA, data="interactions.parquet", to="out")
    return f"python -m benchmarks.{benchmark.script} {shown}".strip()


def measured(benchmark, words, places, core):
    """Runs a benchmark, and returns its result."""
    python = benchmark.interpreter or sys.executable
    environment = dict(os.environ, TF_CPP_MIN_LOG_LEVEL="3")
    if not benchmark.interpreter:  # the peers are built for this Python
        environment["PYTHONPATH"] = str(ROOT / PEERS)
    arguments = shlex.split(words.format(**places))
    machine, began = results.machine(core), time.time()
    done = subprocess.run(
        [python, "-W", "ignore", "-m", f"benchmarks.{benchmark.script}", *arguments],
        cwd=str(ROOT),
        env=environment,
        stdout=subprocess.PIPE,
        encoding="utf-8",
        check=True,
    )
    said, tables = results.parsed(done.stdout)
    if len(tables) > len(benchmark.tables):
        raise ValueError(f"it printed {len(tables)} tables, for {len(benchmark.tables)} names")
    return {
        "schema": results.SCHEMA,
        "name": benchmark.name,
        "command": command(benchmark, words),
        "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
        "seconds": round(time.time() - began),
        "machine": machine,
        "versions": versions(_interpreter(words) or python, environment),
        "said": said,
        "tables": dict(zip(benchmark.tables, tables)),
    }


def _interpreter(words):
    """The interpreter that the words of a command name, None if there is none."""
    named = [path for name, path in (("{tf1}", TF1), ("{tfra}", TFRA)) if name in words]
    return named[0] if named else None


def versions(python, environment):
    """The versions of Python and of `PACKAGES` in that interpreter."""
    asked = [python, "-W", "ignore", "-c", VERSIONS, *PACKAGES]
    return json.loads(subprocess.check_output(asked, cwd=str(ROOT), env=environment))


def main():
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    names = [benchmark.name for benchmark in BENCHMARKS]
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="by default all: " + " ".join(names)
    )
    parser.add_argument("--short", action="store_true", help="with little data, in minutes")
    parser.add_argument(
        "--since",
        type=datetime.date.fromisoformat,
        default=datetime.date.max,
        metavar="YYYY-MM-DD",
        help="leave out what has been measured since that day",
    )
    parser.add_argument("--list", action="store_true", help="say what each is, and run none")
    parser.add_argument("--data", default=DATA, help="the data set of ASSISTments (%(default)s)")
    parser.add_argument("--to", metavar="FOLDER", help="where the results go")
    args = parser.parse_args()
    unknown = set(args.names) - set(names)
    if unknown:
        parser.error(f"there is no {unknown.pop()}; there are: {' '.join(names)}")
    folder = ROOT / (args.to or (SHORT_RESULTS if args.short else results.FOLDER))
    places = {"tf1": TF1, "tfra": TFRA, "data": args.data, "to": os.path.relpath(folder, ROOT)}
    wanted = [one for one in BENCHMARKS if not args.names or one.name in args.names]
    if args.list:
        for benchmark in wanted:
            words = benchmark.short if args.short else benchmark.full
            print(listed(benchmark, words, places), end="\n\n")
        return 0
    folder.mkdir(parents=True, exist_ok=True)
    core, failed = core_milliseconds(), False
    for benchmark in wanted:
        words = benchmark.short if args.short else benchmark.full
        reason = measured_since(benchmark.name, folder, args.since) or missing(
            benchmark, words, places
        )
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
