"""HSTU beside DeepFM on ASSISTments 2017: who answers a problem rightly, given all answers before.

    python -m benchmarks.hstu_assist DATA [--epochs N] [--users N] [--out DIR]

DATA is interactions.parquet: user, seq, problem, skill, label, day. Users are divided, every fifth
for the test, so that a test user is new. Both train under migrate.training's loop, in one thread.

- HSTU ranks (`migrate.sequences.Ranking`): it reads a user's answers in windows of 100, each the
  problem with its skill, then the answer. Time is the day.
- DeepFM has a row per answer: the problem, its skill, the problem and answer before, the skill's
  and the user's answers so far in buckets of their number and of their share of right ones.

The AUC's difference is parity.compare's, with the users as clusters.
"""

import argparse
import os
import sys
import tempfile
import time

import numpy as np
import pyarrow.parquet as pq
import torch
from torch import nn
from torch.nn import functional as F

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

import parity
from migrate.sequences import Hstu, Packed, Ranking, RankingModel
from migrate.training.task import Batch, Task
from migrate.training.trainer import Settings, train

WINDOW, DIM, EVERY = 100, 64, 5
NAMES = ("user", "problem", "skill", "label", "day")


def read(path):
    """The columns in the order of the users and their answers; numbers from 1."""
    table = pq.read_table(path)
    order = np.lexsort([table["seq"].to_numpy(), table["user"].to_numpy()])
    columns = {name: table[name].to_numpy()[order] for name in NAMES}
    for name in ("user", "problem", "skill"):
        columns[name] = np.unique(columns[name], return_inverse=True)[1] + 1
    return columns


class Shuffled:
    """Rows of tensors, of one first dimension, in an order that a seed gives for each epoch."""

    def __init__(self, tensors, make, size, epochs):
        self._tensors, self._make, self._size = tensors, make, size
        self._epochs, self._given = epochs, 0

    def __iter__(self):
        count = len(self._tensors[0])
        batches = -(-count // self._size)
        while self._given < batches * self._epochs:
            epoch, number = divmod(self._given, batches)
            order = torch.randperm(count, generator=torch.Generator().manual_seed(epoch))
            for own in order.split(self._size)[number:]:
                self._given += 1
                yield self._make(*(tensor[own] for tensor in self._tensors))

    def state_dict(self):
        return {"given": self._given}

    def load_state_dict(self, state):
        self._given = state["given"]


class Asked(nn.Module):
    """The vector of each problem with its skill: the sum of theirs."""

    def __init__(self, columns):
        super().__init__()
        pairs = np.stack([columns["problem"], columns["skill"]], 1)
        kinds, self.rows = np.unique(pairs, axis=0, return_inverse=True)
        self.register_buffer("kinds", torch.from_numpy(kinds))
        self.problem = nn.Embedding(int(columns["problem"].max()) + 1, DIM)
        self.skill = nn.Embedding(int(columns["skill"].max()) + 1, DIM)
        for table in (self.problem, self.skill):
            nn.init.normal_(table.weight, std=0.05)

    def forward(self, rows):
        problem, skill = self.kinds[rows].unbind(1)
        return self.problem(problem) + self.skill(skill)


class Sequences(nn.Module):
    """From windows to (loss, logits)."""

    def __init__(self, asked):
        super().__init__()
        tower = Hstu(DIM, heads=2, layers=2, length=2 * WINDOW, buckets=64, dropout=0.1)
        self.model = RankingModel(asked, tower, Ranking(DIM, ["right"]))

    def forward(self, packed):
        logits = self.model.logits(packed)
        return self.model.task.loss(logits, packed)["right"], logits["right"]


def windows(columns, rows, users):
    """The places in the columns of each window of the users' answers; and what makes a batch of
    the windows of some numbers."""
    places = []
    for user in users:
        own = np.flatnonzero(columns["user"] == user)
        places += np.split(own, range(WINDOW, len(own), WINDOW))

    def batch(numbers):
        chosen = [places[number] for number in numbers.tolist()]
        items, days, labels = (
            [column[own] for own in chosen] for column in (rows, columns["day"], columns["label"])
        )
        packed = Packed.of(items, days, {"right": labels})
        return Batch(packed, packed.labels["right"].float())

    return np.concatenate(places), torch.arange(len(places)), batch


class DeepFM(nn.Module):
    """Factorisation machine and layers over one embedding per field."""

    def __init__(self, sizes, dim=16):
        super().__init__()
        starts = np.cumsum([0, *sizes])[:-1]
        self.register_buffer("starts", torch.from_numpy(starts))
        self.vectors, self.first = nn.Embedding(sum(sizes), dim), nn.Embedding(sum(sizes), 1)
        nn.init.normal_(self.vectors.weight, std=0.05)
        nn.init.zeros_(self.first.weight)
        self.deep = nn.Sequential(
            nn.Linear(len(sizes) * dim, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU(),
            nn.Linear(64, 1),
        )  # fmt: skip

    def forward(self, inputs):
        fields, label = inputs
        ids = fields + self.starts
        vectors = self.vectors(ids)
        pairs = (vectors.sum(1) ** 2 - (vectors**2).sum(1)).sum(1) / 2
        logits = self.first(ids).sum((1, 2)) + pairs + self.deep(vectors.flatten(1))[:, 0]
        return F.binary_cross_entropy_with_logits(logits, label), logits


def before(groups, label):
    """How many answers of its group came before each, and how many of them were right."""
    order = np.argsort(groups, kind="stable")
    starts = np.flatnonzero(np.r_[True, np.diff(groups[order]) != 0])
    sizes = np.diff(np.r_[starts, len(order)])
    number = np.arange(len(order)) - np.repeat(starts, sizes)
    right = np.cumsum(label[order]) - label[order]
    right -= np.repeat(right[starts], sizes)
    counts = np.empty((2, len(order)), np.int64)
    counts[:, order] = number, right
    return counts


def fields(columns):
    """(int64 [rows, fields], the sizes of the fields)"""
    user, label = columns["user"], columns["label"]
    first = np.r_[True, np.diff(user) != 0]
    found = [columns["problem"], columns["skill"]]
    found += [np.where(first, 0, np.roll(columns["problem"], 1))]
    found += [np.where(first, 2, np.roll(label, 1))]
    for groups in (user, user * 1000 + columns["skill"]):
        number, right = before(groups, label)
        share = np.floor(20 * right / np.maximum(number, 1)).astype(np.int64)
        found += [np.log2(number + 1).astype(np.int64), np.where(number > 0, share + 1, 0)]
    return np.stack(found, 1), [int(one.max()) + 1 for one in found]


def trained(module, rate, data, out):
    """The module after all batches, and the seconds that they took."""
    begun = time.monotonic()
    task = Task(module, torch.optim.Adam(module.parameters(), rate))
    train(task, data, out, Settings(checkpoint_every=10**6, report_every=100))
    return module.eval(), time.monotonic() - begun


def scores(module, tensors, make, size):
    """The logits, batch by batch."""
    with torch.no_grad():
        batches = (make(*some) for some in zip(*(tensor.split(size) for tensor in tensors)))
        return torch.cat([module(batch.inputs)[1] for batch in batches]).numpy()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("data")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--users", type=int, metavar="N", help="the first N alone (default: all)")
    parser.add_argument("--out", help="folder for the report of parity")
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    columns = read(args.data)
    users = np.unique(columns["user"])[: args.users]
    kept = np.isin(columns["user"], users)
    columns = {name: column[kept] for name, column in columns.items()}
    tested = users[users % EVERY == 0]
    chosen = np.isin(columns["user"], tested)
    with tempfile.TemporaryDirectory() as folder:
        table, sizes = fields(columns)
        rows = [torch.from_numpy(table), torch.from_numpy(columns["label"]).float()]

        def row_batch(own, label):
            return Batch((own, label), label)

        source = Shuffled([one[torch.from_numpy(~chosen)] for one in rows], row_batch, 1024, 2)
        deepfm, seconds = trained(DeepFM(sizes), 1e-3, source, os.path.join(folder, "deepfm"))
        print(f"DeepFM: {seconds:.0f} s")
        baseline = scores(deepfm, [one[torch.from_numpy(chosen)] for one in rows], row_batch, 4096)
        asked = Asked(columns)
        _, numbers, batch = windows(columns, asked.rows, np.setdiff1d(users, tested))
        source = Shuffled([numbers], batch, 16, args.epochs)
        hstu, seconds = trained(Sequences(asked), 1e-3, source, os.path.join(folder, "hstu"))
        print(f"HSTU: {seconds:.0f} s")
    places, numbers, batch = windows(columns, asked.rows, tested)
    candidate = np.empty(len(columns["label"]), np.float32)
    candidate[places] = scores(hstu, [numbers], batch, 64)
    label, owner = columns["label"][chosen], columns["user"][chosen]
    comparison = parity.compare(label, baseline, candidate[chosen], clusters=owner)
    low, high = comparison.interval
    print(f"{chosen.sum():,} answers of {len(tested)} users")
    print("\n| | AUC |\n|---|---|")
    print(f"| DeepFM | {comparison.baseline.auc:.4f} |")
    print(f"| HSTU | {comparison.candidate.auc:.4f} |\n")
    print(f"difference {comparison.delta:+.4f} [{low:+.4f}, {high:+.4f}]")
    if args.out:
        parity.write_report(comparison, args.out)


if __name__ == "__main__":
    main()
