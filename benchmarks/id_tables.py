"""Tables by raw ids that grow, against tables of a fixed size: ids per second of training.

    python -m benchmarks.id_tables [--steps N] [--repeats N] [--ids N] [--batch N] [--threads N]

A step looks up 8 features of one table, of 5 ids a bag, pools by sum, and takes a step of Adagrad
on vectors of 16 numbers.

    id tables      migrate.id_tables: the index, new rows, counts, the step
    TorchRec       an EmbeddingBagCollection as DistributedModelParallel has it in one process, with
                   FBGEMM's Adagrad in the backward pass; its rows are declared
    EmbeddingBag   torch.nn.EmbeddingBag(sparse=True) and torch.optim.Adagrad; its rows are declared

Ids are drawn by Zipf's law, of which few make up most of a batch, or uniformly, where nearly all
of a batch differ; the tables have met them all before. In a third case one id in 50 is new to the
table that grows, and the others get a known one. The three take turns on the same batches; ratios
are within a turn.
"""

import argparse
import os
import statistics
import sys
import tempfile
import time

import numpy as np
import torch
import torch.distributed as dist

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from torchrec import EmbeddingBagCollection, EmbeddingBagConfig, KeyedJaggedTensor
from torchrec.distributed import DistributedModelParallel
from torchrec.optim.apply_optimizer_in_backward import apply_optimizer_in_backward

from migrate.id_tables import IdEmbeddings, IdTable
from migrate.torchrec.optimizers import Adagrad

FEATURES = [f"f{k}" for k in range(8)]
PER_BAG, DIM, RATE = 5, 16, 0.05
CASES = ("Zipf", "uniform", "Zipf, 1 in 50 new")


def batches(case, args, draw):
    """(ids of the table that grows, ids of the others) of each step."""
    count = len(FEATURES) * args.batch * PER_BAG
    for _ in range(args.steps):
        if case == "uniform":
            ids = draw.integers(0, args.ids, count)
        else:
            ids = draw.zipf(1.2, count) % args.ids
        raw = ids
        if case.endswith("new"):
            new = draw.random(count) < 1 / 50
            raw = np.where(new, draw.integers(2**40, 2**62, count), ids)
        yield torch.from_numpy(raw), torch.from_numpy(ids)


def features(ids, lengths):
    return KeyedJaggedTensor(FEATURES, ids, lengths=lengths)


def id_tables(args):
    """A function that takes a step."""
    tables = IdEmbeddings([IdTable("t", DIM, FEATURES)])
    optimizer = tables.optimizer(Adagrad, lr=RATE)
    tables(dict.fromkeys(FEATURES, (torch.arange(args.ids), torch.tensor([0, args.ids]))))
    tables.forget()

    def step(ids, lengths):
        found = tables(features(ids, lengths))
        torch.cat(list(found.values())).square().sum().backward()
        optimizer.step()

    return step


def torchrec(args):
    config = EmbeddingBagConfig(
        name="t", embedding_dim=DIM, num_embeddings=args.ids, feature_names=FEATURES
    )
    collection = EmbeddingBagCollection(tables=[config])
    settings = {"lr": RATE, "eps": 1e-8}
    apply_optimizer_in_backward(torch.optim.Adagrad, collection.parameters(), settings)
    model = DistributedModelParallel(collection, device=torch.device("cpu"))

    def step(ids, lengths):
        model(features(ids, lengths)).values().square().sum().backward()

    return step


def embedding_bag(args):
    bags = torch.nn.EmbeddingBag(args.ids, DIM, mode="sum", sparse=True, include_last_offset=True)
    optimizer = torch.optim.Adagrad(bags.parameters(), lr=RATE)

    def step(ids, lengths):
        optimizer.zero_grad()
        bounds = torch.nn.functional.pad(lengths.cumsum(0), (1, 0))
        bags(ids, bounds).square().sum().backward()
        optimizer.step()

    return step


def seconds(step, lots, lengths):
    begun = time.perf_counter()
    for ids in lots:
        step(ids, lengths)
    return (time.perf_counter() - begun) / len(lots)


def shown(values, digits):
    values = sorted(values)
    numbers = (statistics.median(values), values[0], values[-1])
    return "{} [{}, {}]".format(*(f"{value:,.{digits}f}" for value in numbers))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=20, help="of a turn")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--ids", type=int, default=1_000_000)
    parser.add_argument("--batch", type=int, default=4096)
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    names = ("id tables", "TorchRec", "EmbeddingBag")
    print(
        "| ids | id tables, ids/s | TorchRec, ids/s | EmbeddingBag, ids/s | "
        "id tables / TorchRec | id tables / EmbeddingBag |\n|---|---|---|---|---|---|"
    )
    lengths = torch.full((len(FEATURES) * args.batch,), PER_BAG)
    with tempfile.TemporaryDirectory() as folder:
        dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=0, world_size=1)
        for case in CASES:
            steps = [make(args) for make in (id_tables, torchrec, embedding_bag)]
            draw = np.random.default_rng(0)
            speeds = {name: [] for name in names}
            for turn in range(1 + args.repeats):
                raw, known = zip(*batches(case, args, draw))
                for name, step, lots in zip(names, steps, (raw, known, known)):
                    taken = seconds(step, lots, lengths)
                    if turn:
                        speeds[name].append(len(FEATURES) * args.batch * PER_BAG / taken)
            ratios = [
                [one / other for one, other in zip(speeds["id tables"], speeds[name])]
                for name in names[1:]
            ]
            columns = [shown(speeds[name], 0) for name in names]
            columns += [shown(of, 2) for of in ratios]
            print("| " + " | ".join([case, *columns]) + " |", flush=True)
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
