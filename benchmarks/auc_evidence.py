"""AUC of synchronous, semi-synchronous and asynchronous training on ASSISTments 2017, by seeds.

    python -m benchmarks.auc_evidence [--seeds N] [--modes MODE ...] [--delays D ...]
        [--python PATH] [--data PATH] [--split test|validation] [--set NAME=VALUE ...]
        [--quick] [--keep FOLDER] [--json FILE] [--plot FILE]

A DeepFM reads user, problem, skill and features of the user's earlier answers; it trains on days
0-24 and is scored on days 25-29. Eight workers, two parameter servers, a real cluster of processes;
a fifth of the batches pause five times as long, and one worker twice as long as the others.

    sync            the exact global batch: GlobalBatchOptimizer(paced=True)
    semi-sync       the same, not paced, Threshold(bound)
    async           the plain optimizer on each local batch, the same hyperparameters
    async-tuned     the same from a learning rate picked for it on the validation days
    native-sync     TensorFlow's SyncReplicasOptimizer around the plain optimizer
    backups         the same; a global batch has four batches more, and the last four are dropped
    low-beta1       semi-sync, and Adam with the beta1 that benchmarks/mitigations.py picks
    sync-low-beta1  the exact global batch with that
    staleness-S     semi-sync with in_flight=MeanStaleness(S), S = 0.125, 0.25, 0.5 or 1
    paced-start     semi-sync with paced=PacedSteps(first=a fifth of the steps)
    delay D         one process, no cluster: the global batch's gradients, all of them D global
                    steps old. Delay 0 is what sync must equal; the others show what staleness
                    alone costs

All train on the same batches; a seed fixes the initial values, the batches, their order and which
are slow (`auc_evidence_parts.plan`). The same file says how the hyperparameters were picked on days
0-24, and what that favours. Progress goes to stderr, Markdown to stdout.
"""

import argparse
import contextlib
import json
import os
import platform
import sys
import tempfile

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

import parity
from benchmarks.auc_evidence_parts import context, data, options, plan, plot, report, runs

QUICK = 40  # global steps


def arguments():
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    options.declare(parser)
    every = [*runs.MODES, *runs.OTHERS]
    parser.add_argument("--modes", nargs="*", choices=every, default=list(runs.MODES))
    parser.add_argument("--delays", nargs="*", type=int, default=[0, 1])
    parser.add_argument("--split", choices=list(plan.SPLITS), default="test")
    parser.add_argument("--quick", action="store_true", help="a smoke run, one seed, no evidence")
    parser.add_argument("--keep", metavar="FOLDER", help="keep scores, checkpoints and logs there")
    parser.add_argument("--plot", help="where to draw the seeds by mode, e.g. an .svg")
    parser.add_argument("--frontier", help="where to draw the AUC by the pace")
    args = parser.parse_args()
    if args.frontier and not ("sync" in args.modes and {"async", "async-tuned"} & {*args.modes}):
        parser.error(
            "--frontier compares with sync, and paces with async or async-tuned: add to --modes"
        )
    args.settings = options.settings(parser, args)
    return args


def carry_out(experiment, seeds, modes, delays):
    """Carries out all runs, seed by seed; returns their figures.

    Each seed starts with another mode than the one before, so that other load on the machine, which
    changes over time, affects all modes alike.
    """
    results = []
    for seed in seeds:
        turned = [modes[(at + seed) % len(modes)] for at in range(len(modes))]
        of_seed = list(runs.cluster(experiment, seed, turned)) if turned else []
        of_seed += runs.alone(experiment, seed, delays) if delays else []
        for result in of_seed:
            line = "seed {seed} {mode}: AUC {auc:.5f}".format(**result)
            print(line, file=sys.stderr, flush=True)
        results += of_seed
    order = modes + ["delay {}".format(delay) for delay in delays]
    return sorted(results, key=lambda result: (order.index(result["mode"]), result["seed"]))


def ensembles(experiment, results):
    """Dict of mode -> parity's comparison, as JSON, of the seeds' mean scores with sync's.

    Clustered by user. It covers the choice of the test rows; the spread of the seeds does not.
    """
    scores = {}
    for result in results:
        scores.setdefault(result["mode"], []).append(np.load(result["scores"]).astype(np.float64))
    means = {mode: np.mean(all_seeds, axis=0) for mode, all_seeds in scores.items()}
    answers = data.load(experiment.data)
    held_out = data.rows_of(answers, plan.SPLITS[experiment.split][1])
    labels, users = answers.labels[held_out], answers.fields[held_out, 0]
    return {
        mode: parity.compare(labels, means["sync"], mean, clusters=users).to_json()
        for mode, mean in means.items()
        if mode != "sync" and "sync" in means
    }


def print_report(evidence):
    """Prints the Markdown."""
    machine, settings = evidence["machine"], plan.Settings(**evidence["settings"])
    print("{platform}, {processors} CPUs, Python {python}, TF {tensorflow}\n".format(**machine))
    print(", ".join("{} {}".format(name, value) for name, value in evidence["settings"].items()))
    print("train on days {}-{}, score days {}-{}".format(*evidence["days"]), end="; ")
    print("{:,} and {:,} rows; ".format(*evidence["rows"]), end="")
    print("AUC of the users' and problems' means: {:.5f}\n".format(evidence["means_auc"]))
    print(report.summary_table(evidence["results"], settings) + "\n")
    print(report.auc_table(evidence["results"]) + "\n")
    print(report.staleness_table(evidence["results"], settings) + "\n")
    for mode, compared in evidence["ensembles"].items():
        line = (
            "mean scores of the seeds, {} against sync: {:+.5f}, 90 % interval {:+.5f} to {:+.5f}"
        )
        print(line.format(mode, compared["delta"], *compared["interval"]), compared["verdict"])


def describe(experiment, results):
    """All of the evidence, as JSON values."""
    answers = data.load(experiment.data)
    days = plan.SPLITS[experiment.split]
    train, held_out = (data.rows_of(answers, part) for part in days)
    machine = {"platform": platform.platform(), "processors": os.cpu_count()}
    machine.update(runs.tensorflow_version(experiment.python))
    return {
        "machine": machine,
        "settings": experiment.settings._asdict(),
        "days": [day for first, last in days for day in (first, last - 1)],
        "rows": [part.stop - part.start for part in (train, held_out)],
        "features": answers.about,
        "means_auc": context.means_auc(answers, train, held_out),
        "results": results,
        "differences": {
            mode: dict(difference._asdict(), verdict=difference.verdict)
            for mode, difference in report.differences(results).items()
        },
        "ensembles": ensembles(experiment, results),
    }


def main():
    args = arguments()
    settings, seeds = args.settings, range(1, args.seeds + 1)
    if args.quick:
        settings, seeds = settings._replace(most_steps=QUICK), range(1, 2)
    with contextlib.ExitStack() as stack:
        folder = os.path.abspath(args.keep or stack.enter_context(tempfile.TemporaryDirectory()))
        prepared = os.path.join(folder, "data")
        os.makedirs(prepared)
        data.prepare(args.data, prepared)
        python = os.path.abspath(args.python)
        experiment = runs.Experiment(prepared, folder, python, settings, args.split)
        evidence = describe(experiment, carry_out(experiment, seeds, args.modes, args.delays))
    print_report(evidence)
    if args.json:
        with open(args.json, "w") as file:
            json.dump(evidence, file, indent=1)
    for draw, path in ((plot.strip_plot, args.plot), (plot.frontier_plot, args.frontier)):
        if path:
            draw(evidence["results"], path)


if __name__ == "__main__":
    main()
