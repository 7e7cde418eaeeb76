"""One of several processes that train tables by raw ids:

python -m tests.id_tables.process SCENARIO FOLDER RANK RANKS

It writes what it found to FOLDER/SCENARIO.RANK-RANKS. `run` starts them all.
"""

import pathlib
import subprocess
import sys
from datetime import timedelta

import numpy as np
import torch
import torch.distributed as dist

import migrate
from migrate.id_tables import (
    IdEmbeddings,
    IdTable,
    Limit,
    clip_grad_norm_,
    fill,
    load,
    save,
)
from migrate.torchrec import optimizers
from migrate.training import Batch, Settings, Task, train
from semisync.common.errors import SemisyncError, UsageError
from tests.id_tables.reference import DIM, FEATURES, OPTIMIZERS, columns_of, loss_of, tables
from tests.support.require import ROOT, environment

BAGS = 12
IDS = np.random.default_rng(1).integers(-(2**63), 2**63 - 1, 90)


def batches(count=5):
    """Global batches: {feature: bags}, targets. Later ones bring new ids; ids are repeated."""
    draw = np.random.default_rng(0)
    for number in range(count):
        ids = IDS[: 10 + 6 * number]
        bags = {
            name: [draw.choice(ids, draw.integers(0, 5)).tolist() for _ in range(BAGS)]
            for name in FEATURES
        }
        yield bags, torch.from_numpy(draw.normal(size=(len(FEATURES), BAGS, DIM))).float()


def given(bags):
    """As a look-up takes them."""
    return {
        name: (
            torch.tensor(sum(own, []), dtype=torch.int64),
            torch.tensor([0, *map(len, own)]).cumsum(0),
        )
        for name, own in bags.items()
    }


def share(bags, targets, places):
    """The bags at these places."""
    some = {name: [own[place] for place in places] for name, own in bags.items()}
    return given(some), targets[:, list(places)].flatten(0, 1)


def unequal(number, rank, ranks):
    """Of batch `number`: process 0 has none of the second one, and more than others of the rest."""
    if ranks == 1:
        return range(BAGS)
    firsts = 0 if number == 1 else BAGS // 2
    return range(firsts) if rank == 0 else range(firsts + rank - 1, BAGS, ranks - 1)


def steps(rank, ranks, folder):
    """{optimizer: rows of this process}."""
    found = {}
    for kind, settings in OPTIMIZERS.items():
        table = tables(average=False)
        optimizer = table.optimizer(getattr(optimizers, kind), **settings)
        for number, (bags, targets) in enumerate(batches()):
            batch, own = share(bags, targets, unequal(number, rank, ranks))
            loss_of(table(batch), own).backward()
            optimizer.step()
        found[kind] = columns_of(table)
    return found


def means(rank, ranks, folder):
    """With a loss that is a mean over equal shares."""
    table = tables()
    optimizer = table.optimizer(optimizers.Adagrad, lr=0.1)
    for bags, targets in batches():
        batch, own = share(bags, targets, range(rank, BAGS, ranks))
        (loss_of(table(batch), own) / (len(own) * DIM)).backward()
        optimizer.step()
    return columns_of(table)


def without_backward(rank, ranks, folder):
    """A process whose loss does not depend on its ids."""
    table = tables(average=False)
    optimizer = table.optimizer(optimizers.Adam, lr=0.1)
    for bags, targets in batches():
        batch, own = share(bags, targets, range(rank, BAGS, ranks))
        found = table(batch)
        if rank == 0:
            loss_of(found, own).backward()
        optimizer.step()
    return columns_of(table)


def frozen(rank, ranks, folder):
    """(vectors of a frozen look-up, share of unknown ids, rows of all)."""
    table = tables(pooling=None)
    table.optimizer(optimizers.Adagrad, lr=0.1)
    known = torch.from_numpy(IDS[:20])
    table(dict.fromkeys(FEATURES, known[rank::ranks]))
    table.forget()
    asked = torch.from_numpy(IDS[10:30] if rank == 0 else IDS[:0])
    table.eval()
    return table(dict.fromkeys(FEATURES, asked))["user"], table.unknown(), table.rows()


def evicting(rank, ranks, folder):
    """(rows of all after each step, [ids that this process has])."""
    limit = Limit(rows=12, policy="least frequent")
    table = IdEmbeddings([IdTable("t", 2, ["f"], pooling=None, limit=limit)])
    optimizer = table.optimizer(optimizers.Adagrad, lr=0.1)
    counts = []
    for number in range(8):
        often = np.repeat(IDS[:6], 5)
        ids = torch.from_numpy(np.append(often, IDS[6 + 4 * number :][:4])[rank::ranks])
        table({"f": ids})["f"].sum().backward()
        optimizer.step()
        counts.append(table.rows()["t"])
    return counts, table.stores["t"].ids.tolist()


def differing(rank, ranks, folder):
    """What a look-up says where the processes' tables differ."""
    table = IdEmbeddings([IdTable("t", 2 + rank, ["f"], pooling=None)]).eval()
    try:
        table({"f": torch.tensor([1])})
    except UsageError as error:
        return str(error)
    return None


def _trained(rank, ranks, average=False):
    table = tables(average=average, pooling=None)
    return table, table.optimizer(optimizers.Adam, lr=0.01)


def _train(table, optimizer, rank, ranks, numbers):
    """Some of eight batches; each process has a part."""
    for number in numbers:
        ids = torch.from_numpy(np.random.default_rng(number).choice(IDS[: 5 * number + 5], 40))
        found = table(dict.fromkeys(FEATURES, ids[rank::ranks]))
        sum(vectors.square().sum() for vectors in found.values()).backward()
        optimizer.step()


def all_of(table):
    """This process's rows with what is counted of them, and the counts of steps."""
    (store,) = table.stores.values()
    counted = zip(*(one.tolist() for one in (store.ids, store.freqs, store.versions)))
    return (
        columns_of(table, store.name),
        {one: more for one, *more in counted},
        store.step,
        store.updates,
    )


def saving(rank, ranks, folder):
    """What it has when it saves, and after further steps."""
    table, optimizer = _trained(rank, ranks)
    _train(table, optimizer, rank, ranks, range(5))
    save(table, f"{folder}/saved-{ranks}")
    before = all_of(table)
    _train(table, optimizer, rank, ranks, range(5, 8))
    return before, all_of(table)


def loading(rank, ranks, folder):
    """The same of each checkpoint by which another number of processes began."""
    found = {}
    for saved in (1, 2, 3):
        table, optimizer = _trained(rank, ranks)
        _train(table, optimizer, rank, ranks, range(1))  # which is lost
        load(table, f"{folder}/saved-{saved}")
        before = all_of(table)
        _train(table, optimizer, rank, ranks, range(5, 8))
        found[saved] = before, all_of(table)
    return found


def failing(rank, ranks, folder):
    """What each process says where one cannot read its part, and where one lacks memory."""
    table, _ = _trained(rank, ranks)
    store, found = next(iter(table.stores.values())), []
    for name in ("broken", "saved-2"):
        try:
            load(table, f"{folder}/{name}")
        except (MemoryError, SemisyncError) as error:
            found.append((type(error).__name__, str(error)))
        if rank == 1:
            store.clear = _without_memory
    return found


def _without_memory():
    raise MemoryError("no room")


def filling(rank, ranks, folder):
    """The rows of a hash table, and what `fill` says."""
    table = IdEmbeddings([IdTable("t", 4, ["f"], pooling=None)])
    table.optimizer(optimizers.Adagrad, lr=0.1)
    with migrate.open_checkpoint(f"{folder}/source") as checkpoint:
        said = fill(table, "t", migrate.open_hash_tables(checkpoint)["user"], step=9)
    return all_of(table), said._asdict()


def clipping(rank, ranks, folder):
    """(the norm, rows after the step that it clipped)."""
    table = tables(average=False, pooling=None)
    optimizer = table.optimizer(optimizers.GradientDescent, lr=1.0)
    ids = torch.from_numpy(IDS[:20][rank::ranks])
    sum(one.square().sum() for one in table(dict.fromkeys(FEATURES, ids)).values()).backward()
    norm = clip_grad_norm_(table, max_norm=0.01)
    optimizer.step()
    (store,) = table.stores.values()
    return float(norm), dict(zip(store.ids.tolist(), store.weight.detach()))


def damaged(rank, ranks, folder):
    """As `looping`; what process 1 has written at the stop is damaged."""

    def damage(out):
        (path,) = pathlib.Path(out).glob("checkpoints/step-00000006/*/*.1-of-*.parquet")
        flip(path)

    return looping(rank, ranks, folder, damage)


def flip(path, at=0.5):
    """Changes a byte of a file, at this share of it."""
    data = bytearray(path.read_bytes())
    data[int(at * len(data))] ^= 1
    path.write_bytes(data)


def looping(rank, ranks, folder, stopped=lambda out: None):
    """(loss that is reported last, rows, dense weights) of `train`, stopped and gone on with."""
    for steps in (6, 12):
        module = Clicks()
        optimizer = torch.optim.Adagrad(module.dense.parameters(), lr=0.1)
        wrapped = torch.nn.parallel.DistributedDataParallel(module) if ranks > 1 else module
        settings = Settings(steps=steps, checkpoint_every=4)
        out = f"{folder}/looping-{ranks}"
        result = train(Task(wrapped, optimizer), Days(rank, ranks), out, settings, steps == 12)
        if steps == 6 and rank == 0:
            stopped(out)
    return result.step, all_of(module.tables), module.dense.weight.detach()


class Clicks(torch.nn.Module):
    """A dense layer upon a table."""

    def __init__(self):
        super().__init__()
        self.tables = tables(pooling="mean")
        self.tables.optimizer(optimizers.Adam, lr=0.01)
        torch.manual_seed(0)
        self.dense = torch.nn.Linear(len(FEATURES) * DIM, 1)

    def forward(self, inputs):
        found, label = self.tables(inputs[0]), inputs[1]
        logits = self.dense(torch.cat([found[name] for name in FEATURES], 1))[:, 0]
        return torch.nn.functional.binary_cross_entropy_with_logits(logits, label), logits


class Days:
    """Twelve batches of which each process has an equal part."""

    def __init__(self, rank, ranks):
        self.places, self.given = range(rank, BAGS, ranks), 0

    def __iter__(self):
        for number, (bags, targets) in enumerate(batches(12)):
            if number < self.given:
                continue
            self.given += 1
            batch, _ = share(bags, targets, self.places)
            label = (targets[0, list(self.places), 0] > 0).float()
            yield Batch((batch, label), label)

    def state_dict(self):
        return {"given": self.given}

    def load_state_dict(self, state):
        self.given = state["given"]


def main():
    scenario, folder, rank, ranks = sys.argv[1], sys.argv[2], *map(int, sys.argv[3:])
    torch.set_num_threads(1)
    if ranks > 1:
        dist.init_process_group(
            "gloo",
            init_method=f"file://{folder}/{scenario}.store.{ranks}",
            rank=rank,
            world_size=ranks,
            timeout=timedelta(seconds=60),
        )
    found = globals()[scenario](rank, ranks, folder)
    torch.save(found, f"{folder}/{scenario}.{rank}-{ranks}")
    if ranks > 1:
        dist.barrier()
        dist.destroy_process_group()


def run(python, scenario, folder, ranks):
    """What each of `ranks` processes found."""
    command = [str(python), "-m", "tests.id_tables.process", scenario, str(folder)]
    processes = [
        subprocess.Popen(
            [*command, str(rank), str(ranks)],
            cwd=ROOT,
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        for rank in range(ranks)
    ]
    outputs = [process.communicate(timeout=120)[0].decode() for process in processes]
    assert [process.returncode for process in processes] == [0] * ranks, "\n".join(outputs)
    paths = [f"{folder}/{scenario}.{rank}-{ranks}" for rank in range(ranks)]
    return [torch.load(path, weights_only=False) for path in paths]


if __name__ == "__main__":
    main()
