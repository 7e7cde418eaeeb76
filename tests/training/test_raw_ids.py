"""A table by raw ids trains on: new ids come in, rare ones go, and a restart changes nothing."""

import numpy as np
import pytest
import torch
from torch.nn import functional as F
from torchrec import KeyedJaggedTensor

import migrate
from migrate.torchrec import build, load, load_optimizer, read_model
from migrate.training import Batch, Settings, Task, renew_evicted, train
from tests.migrate.plans import edit
from tests.migrate.raw_tables import write_tfra

IDS = np.array([4, -8, 6, 2**40, 0, -(2**62), 17, 5])
INTERVAL, ROWS = 4, len(IDS) + 1  # no free row but that of unknown ids


@pytest.fixture(scope="module")
def converted(tmp_path_factory):
    """A table of a hash table's ids, with Adagrad's state."""
    folder = tmp_path_factory.mktemp("raw")
    rows = np.random.default_rng(0).normal(size=(len(IDS), 4)).astype(np.float32)
    slots = [("Adagrad_accumulator", [(IDS, 7 + abs(rows))])]
    write_tfra(folder / "source", "user", [(IDS, rows)], slots)
    with migrate.open_checkpoint(folder / "source") as checkpoint:
        plan = migrate.plan(checkpoint, ids="mch")
    edit(plan.hash_tables[0], rows=ROWS, pooling="sum")
    migrate.convert(plan, folder / "out")
    return str(folder / "out")


class Clicks(torch.nn.Module):
    def __init__(self, config):
        super().__init__()
        self.tables = build(config)
        self.out = torch.nn.Linear(4, 1)

    def forward(self, inputs):
        ids, label = inputs
        lengths = torch.ones(len(ids), dtype=torch.int64)
        found, _ = self.tables(KeyedJaggedTensor(["user"], ids, lengths=lengths))
        logits = self.out(found["user"])[:, 0]
        return F.binary_cross_entropy_with_logits(logits, label), logits


class Days:
    """Sixteen batches; from the ninth on an id that the table lacks comes, and the first goes."""

    def __init__(self):
        self._given = 0

    def __iter__(self):
        while self._given < 16:
            ids = np.append(IDS[1:], [99, 99, 99] if self._given >= 8 else IDS[0])
            label = torch.from_numpy((ids % 2).astype(np.float32))
            self._given += 1
            yield Batch((torch.from_numpy(ids), label), label)

    def state_dict(self):
        return {"given": self._given}

    def load_state_dict(self, state):
        self._given = state["given"]


def opened(converted):
    """The task; a table's row by id."""
    config = read_model(converted)
    config["tables"][0]["ids"]["eviction_interval"] = INTERVAL
    torch.manual_seed(0)
    model = Clicks(config)
    load(model, converted)
    optimizer = torch.optim.Adagrad(model.parameters(), 0.5, initial_accumulator_value=0.1)
    load_optimizer(optimizer, dict(model.named_parameters()), converted)
    renew_evicted(model, optimizer)
    return Task(model, optimizer)


def row_of(task, one):
    """(vector, accumulator) that an id has, or None."""
    tables = task.module.tables
    managed = tables._managed_collision_collection._managed_collision_modules["user"]
    (place,) = np.nonzero(managed._mch_sorted_raw_ids.numpy() == one)
    if not len(place):
        return None
    row = managed._mch_remapped_ids_mapping[int(place[0])]
    weight = tables._embedding_bag_collection.embedding_bags["user"].weight
    accumulator = task.optimizer.state[weight]["sum"]
    return weight[row].detach().clone(), accumulator[row].clone()


def test_a_new_id_takes_the_row_of_one_that_is_gone_and_begins_anew(converted, tmp_path):
    task = opened(converted)
    kept = row_of(task, 17)
    assert torch.all(row_of(task, 4)[1] > 7) and row_of(task, 99) is None
    train(task, Days(), str(tmp_path), Settings(steps=12, checkpoint_every=100))
    assert row_of(task, 4) is None
    vector, accumulator = row_of(task, 99)
    # one step from zero, with an accumulator that began with 0.1 rather than the old id's 7
    assert torch.all(vector.abs() <= 0.5) and torch.all(accumulator < 1)
    assert torch.all(row_of(task, 17)[1] > kept[1])


def test_stopped_at_a_multiple_of_the_interval_it_goes_on_to_the_same_bits(converted, tmp_path):
    whole, first, again = (opened(converted) for _ in range(3))
    settings = Settings(checkpoint_every=2 * INTERVAL)
    train(whole, Days(), str(tmp_path / "whole"), settings)
    train(first, Days(), str(tmp_path / "parts"), settings._replace(steps=2 * INTERVAL))
    train(again, Days(), str(tmp_path / "parts"), settings, resume=True)
    wanted, found = whole.module.state_dict(), again.module.state_dict()
    assert [name for name in wanted if not torch.equal(wanted[name], found[name])] == []
    for one in (99, 17):
        assert all(map(torch.equal, row_of(whole, one), row_of(again, one)))
