"""Generative recommendation on public histories: how fast, how good, beside a peer.

    python -m benchmarks.sequences [--data FOLDER] [--sets NAME ...] [--seeds N] [--peer PYTHON]
        [--models NAME ...] [--epochs N] [--patience N]

1. Speed: items per second of a step of each tower, forward and back, packed and padded, on the
   lengths of each data set; the way into blocks and back beside fbgemm's jagged ops. Seconds are
   the processor's, of one thread unless --threads says more. --batches 0: without it.
2. Quality: leave one out, all items ranked, those that the user had among them or without them. R@K
   is HR@K, N@K NDCG@K; a target that ties with another item stands behind it. Means over seeds,
   with Student's 95 % interval. A model trains until NDCG@10 of the validation has not got better
   for some epochs, and the best epoch is measured.
3. Speed of these very runs: items per second of training, and of ranking the test.

--choose SET tries rates and dropouts with every model, as many with each, and takes the best on the
validation of SET.

--peer is an interpreter with rectools, whose HSTUModel and SASRecModel train on the same split, of
the same size, by the full softmax; without it there is no peer. To make it:

    python3.11 -m venv .peer
    .peer/bin/pip install 'numpy<2' rectools==0.19.0 pytorch-lightning==2.5.2 torch==2.13.0

--authors is a checkout of meta-recsys/generative-recommenders, whose HSTU and SASRec train in our
loop on the same batches, with the authors' loss; fbgemm_gpu is needed. --reference gives ours and
theirs the size and rate of the authors' configs/ml-1m.

--kept FILE keeps every run, and takes those that it has as done.
"""

import json
import math
import os
import statistics
import subprocess

import torch

from benchmarks.harness.kept import Kept
from benchmarks.harness.options import AnyOf, options
from benchmarks.sequences_parts import authors, ours
from benchmarks.sequences_parts.data import NAMES, PUBLISHED, Histories
from benchmarks.sequences_parts.speed import WAYS, moved, speeds
from benchmarks.tables import head, row
from parity.stats.intervals import student_interval

PEER = os.path.join(os.path.dirname(__file__), "sequences_parts", "peer.py")
OF_PEERS, OF_AUTHORS = (
    tuple(f"{whose} {tower}" for tower in ours.TOWERS) for whose in ("rectools'", "the authors'")
)
KEY = ("set", "model", "rate", "dropout", "seed", "reference")
MEASURED = ("HR@5", "NDCG@5", "HR@10", "NDCG@10")


class Models:
    """Runs of ours and of the peer's."""

    def __init__(self, data, args, kept):
        self._data, self._args, self._kept = data, args, kept

    def settings(self, model):
        """The settings of the trial with the best NDCG@10 of a validation; without trials, ours."""
        tower, args = model.split()[-1], self._args
        setting = ours.REFERENCE if args.reference else ours.SETTINGS[tower]
        setting = setting._replace(patience=args.patience)
        if args.epochs:
            setting = setting._replace(epochs=args.epochs)
        if not args.choose:
            return setting
        trials = [setting._replace(**trial) for trial in ours.TRIALS]
        return max(trials, key=lambda one: self._run(args.choose, model, one, 0)["validation"])

    def runs(self, name, model):
        """A run per seed on a data set."""
        setting = self.settings(model)
        return [self._run(name, model, setting, seed) for seed in range(self._args.seeds)]

    def _run(self, name, model, setting, seed):
        about = {"set": name, "model": model, "rate": setting.rate, "dropout": setting.dropout}
        about.update(seed=seed, reference=self._args.reference)
        return self._kept.line(about, lambda: self._made(name, model, setting, seed))

    def _made(self, name, model, setting, seed):
        args, tower = self._args, model.split()[-1]
        if model not in OF_PEERS:
            device = torch.device(args.device)
            make = authors.AuthorsModel if model in OF_AUTHORS else ours.model_of
            run = ours.run(self._data[name], tower, setting, seed, device=device, make=make)
            return run._asdict()
        told = {"path": os.path.join(args.data, name + ".txt"), "tower": tower, "seed": seed}
        told |= {"threads": args.threads, "batch": 128, "device": args.device}
        names = ("dim", "heads", "layers", "length", "rate", "dropout", "epochs", "patience")
        told |= {name: getattr(setting, name) for name in names}
        command = [args.peer, PEER, json.dumps(told)]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        return json.loads(done.stdout.splitlines()[-1])


def mean(values):
    """The mean as text, with half of its 95 % interval where there are several values."""
    middle = statistics.fmean(values)
    if len(values) == 1:
        return f"{middle:.4f}"
    error = statistics.stdev(values) / math.sqrt(len(values))
    return f"{middle:.4f} ± {student_interval(0, error, len(values) - 1).high:.4f}"


def print_speeds(data, sets, args):
    """Prints the first two tables."""
    print("\n" + head(["lengths of", "tower", *WAYS, "times"]))
    for name in sets:
        for tower in ours.TOWERS:
            setting = ours.SETTINGS[tower]
            found = speeds(data[name], tower, setting, args.batches, args.repeats)
            cells = [f"{found[way]:,.0f}" for way in WAYS]
            times = found[WAYS[0]] / found[WAYS[-1]]
            print(row(name, tower, *cells, f"{times:.1f}"), flush=True)
    print("\n" + head("lengths of | ms a batch, in blocks | by fbgemm's jagged ops"))
    for name in sets:
        taken = moved(data[name], ours.SETTINGS["HSTU"], args.batches, args.repeats)
        print(row(name, *(f"{1000 * one:.2f}" for one in taken)))


def print_quality(found):
    """Prints the second and the third table of `found`, {set: {model: runs}}."""
    names = [name.replace("HR", "R").replace("NDCG", "N") for name in MEASURED]
    print("\n" + head(["set", "model", "what was had", *names, "seeds"]))
    for name, models in found.items():
        for what, text in (("seen", "ranked too"), ("unseen", "left out")):
            for model, runs in models.items():
                cells = [mean([run["figures"][what][one] for run in runs]) for one in MEASURED]
                print(row(name, model, text, *cells, len(runs)))
        for model, figures in PUBLISHED.get(name, {}).items():
            print(row(name, model, "", *(f"{one:.4f}" for one in figures), ""))
    print("\n" + head("set | model | epochs | items/s trained | items/s ranked"))
    for name, models in found.items():
        for model, runs in models.items():
            epochs = statistics.fmean(run["epochs"] for run in runs)
            trained = statistics.median(run["items_trained"] / run["seconds"] for run in runs)
            ranked = statistics.median(run["items_ranked"] / run["ranking_seconds"] for run in runs)
            print(row(name, model, f"{epochs:.0f}", f"{trained:,.0f}", f"{ranked:,.0f}"))


def main():
    """The command line."""
    args = options(
        __doc__,
        data="../shared/data/amazon_s3rec",
        sets=AnyOf(NAMES, ["LastFM", "Beauty"]),
        seeds=5,
        peer=str,
        authors=str,
        reference=False,
        models=[],
        choose=str,
        epochs=int,
        patience=15,
        batches=20,
        repeats=5,
        kept=str,
        threads=1,
        device="cpu",
    )
    torch.set_num_threads(args.threads)
    kept = Kept(args.kept, KEY)
    needed = {*args.sets, *([args.choose] if args.choose else ())}
    data = {name: Histories(args.data, name) for name in needed}
    if args.batches:
        print_speeds(data, args.sets, args)
    if not args.peer:
        print("\nThere is no peer: no --peer was given.")
    if args.authors:
        authors.use(args.authors)
        for more in ({}, {"layers": 8, "heads": 2}):
            setting = ours.REFERENCE._replace(**more)
            apart = authors.apart(setting)
            print(f"HSTU of {setting.layers} layers, with the authors' weights: {apart:.1e} apart")
    with_peers = (*(OF_PEERS if args.peer else ()), *(OF_AUTHORS if args.authors else ()))
    chosen = args.models or (*ours.TOWERS, *with_peers)
    models = Models(data, args, kept)
    for model in chosen if args.choose else ():
        setting = models.settings(model)
        print(f"{model}: rate {setting.rate:g}, dropout {setting.dropout:g}", flush=True)
    print_quality({name: {one: models.runs(name, one) for one in chosen} for name in args.sets})


if __name__ == "__main__":
    main()
