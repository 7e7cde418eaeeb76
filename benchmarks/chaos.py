"""Many random faults in one job: kill -9 and SIGSTOP of workers, chief and parameter servers.

    python benchmarks/chaos.py [--faults N] [--seed N] [--python PATH]

`make test` injects 25 faults with a fixed seed. This runs the same test, with the same checks of
every checkpoint and every ticket, with any number of faults: 200 take about 15 minutes. Prints the
seed, the faults and the fates of the batches.
"""

import argparse
import os
import pathlib
import random
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
TEST = ["tests/tf1/test_faults.py", "-k", "random_faults"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--faults", type=int, default=200)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6), help="default: any")
    parser.add_argument("--python", default=sys.executable, help="has TensorFlow and pytest")
    args = parser.parse_args()
    environment = dict(os.environ, FAULTS=str(args.faults), FAULT_SEED=str(args.seed))
    environment.pop("TF2_BEHAVIOR", None)  # which would make TensorFlow 1.15 behave like 2.x
    command = [args.python, "-m", "pytest", "-q", "-s", *TEST]
    return subprocess.run(command, cwd=str(ROOT), env=environment).returncode


if __name__ == "__main__":
    sys.exit(main())
