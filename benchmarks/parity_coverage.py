"""Do the intervals of `semisync parity` keep their promise? Simulations whose truth is known.

    python -m benchmarks.parity_coverage [--samples 4000] [--seed 0] [--verdicts]

1. Coverage: how often the 90 % interval contains the true difference, and how often models a margin
   apart are found EQUIVALENT (at most one in twenty is promised), by rows, prevalence, ties and
   users.
2. Rare faults: how often a fault that moves the AUC by the margin passes, by the number of
   positives and by how far it moves a row.
3. With --verdicts, in their place: requirements beside AUC, groups with heavy tails, the rows that
   are advised, useless models, copies of rows, several runs, users of very unequal size.

A table each, in benchmarks/parity_coverage_parts. Every sample is judged as `parity.compare` does;
scores are normal within a class, so that the true AUCs follow from the normal distribution. A share
s from N samples is given with its Monte Carlo standard error, sqrt(s (1 - s) / N).
"""

from benchmarks.harness.options import options
from benchmarks.parity_coverage_parts import advice, heavy, intervals, mistakes, requirements, runs
from benchmarks.parity_coverage_parts.simulation import show

ABOUT_AUC = (intervals.COVERAGE, intervals.FAULTS)
VERDICTS = (
    *(requirements.REQUIREMENTS, requirements.TAILS, advice.ADVICE),
    *(mistakes.USELESS, mistakes.COPIES, runs.RUNS, heavy.HEAVY),
)


def main():
    """Prints the tables in Markdown."""
    args = options(__doc__, samples=4000, seed=0, verdicts=False)
    for table in VERDICTS if args.verdicts else ABOUT_AUC:
        show(table, args.samples, args.seed)


if __name__ == "__main__":
    main()
