"""AUC of synchronous, semi-synchronous and asynchronous training on ASSISTments 2017, by seeds.

    python -m benchmarks.auc_evidence [--seeds N] [--modes MODE ...] [--delays D ...]
        [--python PATH] [--data PATH] [--set NAME=VALUE ...] [--quick] [--plot FILE]
        [--frontier FILE]

A DeepFM reads user, problem, skill and features of the user's earlier answers; it trains on days
0-24 and is scored on days 25-29. Eight workers, two parameter servers, a real cluster of processes;
a fifth of the batches pause five times as long, and one worker twice as long as the others.

    sync            the exact global batch: GlobalBatchOptimizer(paced=True)
    semi-sync       the same, not paced, Threshold(bound)
    async           the plain optimizer on each local batch, the same hyperparameters
    async-tuned     the same from a learning rate picked for it on the validation days
    native-sync     TensorFlow's SyncReplicasOptimizer around the plain optimizer
    backups         the same; a global batch has four batches more, and the last four are dropped
    low-beta1       semi-sync, and Adam with a lower beta1
    staleness-S     semi-sync with in_flight=MeanStaleness(S), S = 0.125, 0.25 or 0.5
    delay D         one process, no cluster: the global batch's gradients, all of them D global
                    steps old. Delay 0 is what sync must equal; the others show what staleness
                    alone costs

All train on the same batches; a seed fixes the initial values, the batches, their order and which
are slow (`auc_evidence_parts.plan`). The same file says how the hyperparameters were picked on days
0-24, and what that favours. --set changes a setting, --quick is a smoke run of one seed. Progress
goes to stderr, Markdown to stdout.
"""

import os
import sys
import tempfile

from benchmarks.auc_evidence_parts import data, plan, plot, report, runs
from benchmarks.harness.options import AnyOf, options, refuse

QUICK = 40  # global steps


def arguments():
    """The command line."""
    args = options(
        __doc__,
        seeds=5,
        python=sys.executable,
        data=data.DEFAULT,
        set=[],
        modes=AnyOf(runs.MODES, runs.USUAL),
        delays=[0, 1],
        quick=False,
        plot=str,
        frontier=str,
    )
    if args.frontier and not ("sync" in args.modes and {"async", "async-tuned"} & {*args.modes}):
        refuse("--frontier compares with sync, and paces with async or async-tuned: add to --modes")
    if not os.path.isfile(args.data):
        refuse("{} is not there: pass --data interactions.parquet".format(args.data))
    try:
        args.settings = plan.changed(args.set)
    except ValueError as error:
        refuse(str(error))
    return args


def carry_out(experiment, seeds, modes, delays):
    """Carries out all runs, seed by seed; returns their figures.

    Each seed starts with another mode than the one before, so that other load on the machine, which
    changes over time, affects all modes alike.
    """
    results = []
    for seed in seeds:
        turned = [modes[(at + seed) % len(modes)] for at in range(len(modes))]
        of_seed = list(runs.of_seed(experiment, seed, turned)) if turned else []
        of_seed += runs.alone(experiment, seed, delays) if delays else []
        for result in of_seed:
            line = "seed {seed} {mode}: AUC {auc:.5f}".format(**result)
            print(line, file=sys.stderr, flush=True)
        results += of_seed
    order = modes + ["delay {}".format(delay) for delay in delays]
    return sorted(results, key=lambda result: (order.index(result["mode"]), result["seed"]))


def main():
    """The command line."""
    args = arguments()
    settings, seeds = args.settings, range(1, args.seeds + 1)
    if args.quick:
        settings, seeds = settings._replace(most_steps=QUICK), range(1, 2)
    with tempfile.TemporaryDirectory() as folder:
        experiment = runs.prepared(args, settings, folder)
        results = carry_out(experiment, seeds, args.modes, args.delays)
    print(", ".join("{} {}".format(*setting) for setting in settings._asdict().items()) + "\n")
    print(report.summary_table(results, settings))
    for draw, path in ((plot.strip_plot, args.plot), (plot.frontier_plot, args.frontier)):
        if path:
            draw(results, path)


if __name__ == "__main__":
    main()
