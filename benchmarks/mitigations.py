"""What lessens the cost of late gradients: one process, gradients as late as a cluster's.

    python -m benchmarks.mitigations OUT.jsonl [--blocks DATA/OPTIMIZER/M ...]
        [--modes MODE ...] [--seeds N] [--trials N] [--report]

Each run becomes a line of OUT.jsonl, and is left out where the file has it, so that this can be
stopped and started at any time. A block is a data set, an optimizer and M; within it, each mode of
`mitigations_parts.methods` first gets five validation runs for its rate and its strength
(`mitigations_parts.search`), then all modes train seed by seed on the test split. A seed gives all
modes the same initial values, order of rows and, apart from those with another mean staleness and
async, the same trace of staleness (`mitigations_parts.lateness`).

Then, or with --report at once, it prints Markdown of all that the file has: AUC and log loss
against sync, paired by seed, with Student's 95 % intervals over the seeds; the same along the run;
and what pace the simulated cluster has.
"""

import argparse
import os

import torch

from benchmarks.harness.kept import lines
from benchmarks.mitigations_parts import data, report, search
from benchmarks.mitigations_parts.methods import modes
from benchmarks.mitigations_parts.runs import Runs

BLOCKS = [
    "{}/{}/{}".format(name, optimizer, size)
    for size in (8, 16, 32)
    for name in ("assist", "sparrow")
    for optimizer in ("adam", "adagrad")
]
SEEDS = {"assist": 5, "sparrow": 10}


def main():
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("out", metavar="OUT.jsonl")
    parser.add_argument("--blocks", nargs="+", default=BLOCKS, choices=BLOCKS, metavar="BLOCK")
    parser.add_argument("--modes", nargs="+", help="only these")
    parser.add_argument("--seeds", type=int, help="instead of {}".format(SEEDS))
    parser.add_argument("--trials", type=int, choices=(0, 3, 4, 5), default=5, help="for each mode")
    parser.add_argument("--report", action="store_true", help="carry out nothing")
    args = parser.parse_args()
    torch.set_num_threads(1)
    for block in [] if args.report else args.blocks:
        path = data.FILES[block.partition("/")[0]]
        if not os.path.isfile(path):
            parser.error("{} is not there: leave {} out of --blocks".format(path, block))
        train(args.out, block, args.modes, args.seeds, args.trials)
    print(report.markdown(list(lines(args.out))))
    print(report.paces((8, 16, 32), (0.5, 0.75, 1.0)))


def train(out, block, only, seeds, trials):
    """Carries out one block."""
    name, optimizer, size = block.split("/")
    runs = Runs(out, name, data.load(name), optimizer, int(size))
    chosen = [mode for mode in modes(optimizer, int(size)) if not only or mode.name in only]
    settings = {mode.name: search.settings(runs, mode, trials) for mode in chosen}
    for seed in range(1, (seeds or SEEDS[name]) + 1):
        for mode in chosen:
            rate, strength = settings[mode.name]
            runs.figures(mode, "test", rate, strength, seed)


if __name__ == "__main__":
    main()
