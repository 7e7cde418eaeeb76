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

--load N measures loading instead: N rows of 2 numbers with Adagrad's slots, as TFRA's
FileSystemSaver writes them, into a table of migrate.id_tables: its memory, and the most that the
process takes meanwhile.
"""

import functools
import os
import tempfile
import time

import numpy as np
import torch
import torch.distributed as dist
from torchrec import EmbeddingBagCollection, EmbeddingBagConfig, KeyedJaggedTensor
from torchrec.distributed import DistributedModelParallel
from torchrec.distributed.embeddingbag import EmbeddingBagCollectionSharder
from torchrec.distributed.types import ShardingEnv
from torchrec.optim.apply_optimizer_in_backward import apply_optimizer_in_backward

import migrate
from benchmarks.harness.apart import apart
from benchmarks.harness.options import options
from benchmarks.harness.turns import ratios, turns
from benchmarks.harness.usage import memory
from benchmarks.tables import spread, table
from migrate.id_tables import IdEmbeddings, IdTable, fill
from migrate.torchrec.optimizers import Adagrad

FEATURES = [f"f{k}" for k in range(8)]
PER_BAG, DIM, RATE = 5, 16, 0.05
LOADED_DIM, CHUNK, ODD = 2, 1 << 20, 0x9E3779B97F4A7C15  # an odd factor: ids all differ
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
    model = DistributedModelParallel(
        collection,
        env=ShardingEnv.from_process_group(dist.group.WORLD),
        device=torch.device("cpu"),
        sharders=[EmbeddingBagCollectionSharder()],
    )

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


def main():
    args = options(__doc__, steps=20, repeats=5, ids=1_000_000, batch=4096, threads=1, load=int)
    with tempfile.TemporaryDirectory() as folder:
        if args.load:
            write(folder, args.load)
            cells = apart(load, folder, args.load)
            columns = "ids | table, GB | most while loading, GB | ratio | CPU s | ids/s"
            print(table(columns, [cells]))
        else:
            measure(args, f"{folder}/store")


def write(folder, count):
    """A table of `count` rows as FileSystemSaver writes it, and its slots."""
    draw = np.random.default_rng(0)
    for name in ("user", "user_Adagrad_accumulator"):
        stem = os.path.join(folder, name + "_mht_1of1_rank0_size1")
        with open(stem + "-keys", "wb") as keys, open(stem + "-values", "wb") as values:
            for first in range(0, count, CHUNK):
                number = np.arange(first, min(first + CHUNK, count), dtype=np.uint64)
                (number * np.uint64(ODD)).tofile(keys)
                draw.random((len(number), LOADED_DIM), np.float32).tofile(values)


def gigabytes(mark):
    return memory(mark) * 2**20 / 1e9


def load(folder, count):
    """Memory and time that loading takes, beyond what the process had before, as a row's cells."""
    tables = IdEmbeddings([IdTable("user", LOADED_DIM, ["user"])])
    tables.optimizer(Adagrad, lr=RATE)
    before, begun = gigabytes("VmRSS"), time.process_time()
    filled = fill(tables, "user", migrate.open_hash_tables(folder)["user"], step=1)
    seconds, peak = time.process_time() - begun, gigabytes("VmHWM") - before
    assert filled.rows == count and not any(filled.without.values())
    own = gigabytes("VmRSS") - before
    cells = [f"{count:,}", f"{own:.2f}", f"{peak:.2f}", f"{peak / own:.2f}"]
    return [*cells, f"{seconds:.0f}", f"{count / seconds:,.0f}"]


def measure(args, store):
    """Prints the table of training."""
    torch.set_num_threads(args.threads)
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=0, world_size=1)
    makers = {"id tables": id_tables, "TorchRec": torchrec, "EmbeddingBag": embedding_bag}
    others = list(makers)[1:]
    columns = ["ids", *(f"{name}, ids/s" for name in makers)]
    columns += [f"id tables / {name}" for name in others]
    said = []
    lengths = torch.full((len(FEATURES) * args.batch,), PER_BAG)
    for case in CASES:
        steps = {name: make(args) for name, make in makers.items()}
        draw = np.random.default_rng(0)
        drawn = [list(zip(*batches(case, args, draw))) for _ in range(1 + args.repeats)]

        def speed(name, step, lots):
            taken = seconds(step, next(lots)[name != "id tables"], lengths)
            return len(lengths) * PER_BAG / taken

        sides = {
            name: functools.partial(speed, name, step, iter(drawn)) for name, step in steps.items()
        }
        speeds = turns(sides, args.repeats, uncounted=1)
        said.append([case, *(spread(of, "{:,.0f}") for of in speeds.values())])
        said[-1] += (spread(ratios(speeds["id tables"], speeds[name])) for name in others)
    print(table(columns, said), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
