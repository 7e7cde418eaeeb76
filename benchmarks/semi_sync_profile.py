"""Where a batch spends its time: TensorFlow's own trace of a worker's runs, and the chief's runs.

    python -m benchmarks.semi_sync_profile [--case NAME] [--python PATH]

A parameter server and one worker, which is the chief, too; 50 runs of its train op are traced for
each mode. Prints Markdown tables: the ops of a batch by process and part, what their kernels took,
and the messages between the processes; then what the chief's own runs cost per global step.

A kernel's time is not its whole cost: to schedule an op and to pass a message cost more than most
kernels here. `benchmarks/semi_sync.py` measures the processor time of it all.
"""

import argparse
import json
import os
import sys
import tempfile

from benchmarks.harness.cluster import train
from benchmarks.semi_sync_parts.cases import CASES
from benchmarks.tables import head, row

MODES = ("async", "semi-sync", "auto", "sync")
MODULE = "benchmarks.semi_sync_parts.profiled"


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--case", choices=CASES, default="uniform", metavar="NAME")
    parser.add_argument("--python", default=sys.executable, metavar="PATH")
    options = parser.parse_args()
    profiles = {mode: _profile(options, mode) for mode in MODES}
    print(head("mode | process | part | ops | us per batch"))
    for mode, profile in profiles.items():
        for process, part, ops, micros in profile["parts"]:
            print(row(mode, process, part, f"{ops:.0f}", f"{micros:.0f}"))
    print("\n" + head("mode | messages per batch, worker to PS | PS to worker"))
    for mode, profile in profiles.items():
        print(row(mode, *profile["messages"]))
    print("\n" + head("mode | the chief's run | per global step | its thread, ms of CPU each"))
    for mode, profile in profiles.items():
        for name, count, milliseconds in profile["chief"]:
            print(row(mode, name, f"{count:.2f}", f"{milliseconds:.2f}"))


def _profile(options, mode):
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "profile.json")
        more = {"case": options.case, "mode": mode, "out": out}
        train(MODULE, options.python, 1, 1, folder, 300, **more)
        with open(out) as file:
            return json.load(file)


if __name__ == "__main__":
    main()
