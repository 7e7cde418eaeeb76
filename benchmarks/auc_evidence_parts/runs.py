"""Carries out runs in separate processes, and collects their results.

of_seed   the modes of one seed, one after another, on one cluster
alone     the exact global batch, one process for all its runs (`alone`)
"""

import collections
import json
import os
import subprocess
from typing import NamedTuple

import numpy as np
from sklearn.metrics import log_loss

import parity
from benchmarks.auc_evidence_parts import data, plan
from benchmarks.harness import cluster
from semisync.cluster.local import environment

TIMEOUT = 900.0  # seconds per run, far more than one needs


# How a mode trains, and what differs from the settings: by another name there, or as a number.
MODES = {
    "sync": ("sync", {}),
    "semi-sync": ("semi-sync", {}),
    "async": ("async", {}),
    "async-tuned": ("async", {"learning_rate": "async_rate"}),
    "native-sync": ("native-sync", {}),
    "backups": ("native-sync", {"backups": "backups"}),
    "low-beta1": ("semi-sync", {"beta1": "low_beta1"}),
    "staleness-0.125": ("semi-sync", {"mean_staleness": 0.125}),
    "staleness-0.25": ("semi-sync", {"mean_staleness": 0.25}),
    "staleness-0.5": ("semi-sync", {"mean_staleness": 0.5}),
}
USUAL = ["sync", "semi-sync", "async", "async-tuned"]


class Experiment(NamedTuple):
    """The settings that all runs share.

    Attributes:
        data: the folder of `data.prepare`.
        out: the folder below which the runs write.
        python: the interpreter of the processes.
        settings: `plan.Settings`.
    """

    data: str
    out: str
    python: str
    settings: plan.Settings

    def quality(self, path):
        """{"auc", "log_loss"} of the probabilities in a file, on the held-out rows."""
        scores, labels = np.load(path), self.labels()
        return {
            "auc": parity.auc(labels, scores),
            "log_loss": log_loss(labels, scores.astype(np.float64)),
        }

    def labels(self):
        """The labels of the held-out rows."""
        answers = data.load(self.data)
        return answers.labels[data.rows_of(answers, plan.SPLITS["test"][1])]


def prepared(args, settings, folder):
    """The Experiment of the options, below a folder."""
    written = os.path.join(folder, "data")
    os.makedirs(written)
    data.prepare(args.data, written)
    return Experiment(written, folder, os.path.abspath(args.python), settings)


def of_seed(experiment, seed, modes):
    """Trains one seed in each of `modes`, keys of MODES; yields each run's figures."""
    runs, settings = [], experiment.settings._asdict()
    for name in modes:
        way, other = MODES[name]
        run = {"name": "{}-{}".format(name, seed), "mode": way, "seed": seed}
        for key, value in {"learning_rate": "learning_rate", **other}.items():
            run[key] = settings[value] if isinstance(value, str) else value
        runs.append(run)
    train(experiment, runs, "logs-{}".format(seed))
    for name, run in zip(modes, runs):
        scores = os.path.join(experiment.out, run["name"], "scores.npy")
        figures = measured(experiment, run["name"])
        figures.update(experiment.quality(scores))
        yield dict(run, name=name, mode=name, scores=scores, **figures)


def train(experiment, runs, logs):
    """Trains `runs`, one after another, on one cluster of processes.

    Args:
        runs: dicts as `job` takes them; a run writes into the folder of its "name".
        logs: the folder of the processes' logs. All folders are made below the experiment's `out`.
    """
    for folder in [logs] + [run["name"] for run in runs]:
        os.makedirs(os.path.join(experiment.out, folder))
    settings = experiment.settings
    cluster.train(
        "benchmarks.auc_evidence_parts.job",
        experiment.python,
        settings.ps,
        settings.workers,
        os.path.join(experiment.out, logs),
        TIMEOUT * len(runs),
        data=experiment.data,
        out=experiment.out,
        settings=settings._asdict(),
        runs=runs,
    )


def measured(experiment, folder):
    """The measurements of the workers of the run in a folder: pace and staleness."""
    folder = os.path.join(experiment.out, folder)
    workers = []
    for task in range(experiment.settings.workers):
        with open(os.path.join(folder, "worker-%d.json" % task)) as file:
            workers.append(json.load(file))
    staleness = collections.Counter()
    for worker in workers:
        staleness.update({int(key): count for key, count in worker["staleness"].items()})
    trained = sum(worker["trained"] for worker in workers)
    return {"batches_per_second": trained / workers[0]["seconds"], "staleness": dict(staleness)}


def alone(experiment, seed, delays):
    """Trains one seed on the exact global batch, once per delay; returns the figures."""
    rate, runs = experiment.settings.learning_rate, []
    for delay in delays:
        path = os.path.join(experiment.out, "alone-{}-{}.npy".format(seed, delay))
        runs.append({"seed": seed, "learning_rate": rate, "delay": delay, "scores": path})
    spec = {"data": experiment.data, "runs": runs}
    spec["settings"] = experiment.settings._asdict()
    module = "benchmarks.auc_evidence_parts.alone"
    command = [experiment.python, "-W", "ignore", "-m", module, json.dumps(spec)]
    subprocess.run(
        command, cwd=cluster.ROOT, env=environment(), timeout=TIMEOUT * len(runs), check=True
    )
    return [
        dict(run, mode="delay {}".format(run["delay"]), **experiment.quality(run["scores"]))
        for run in runs
    ]
