"""Tables by raw ids against torch.nn.EmbeddingBag, whose rows are declared beforehand."""

import numpy as np
import pytest
import torch

from migrate.id_tables import IdEmbeddings, IdTable, Normal
from migrate.torchrec import optimizers

OPTIMIZERS = {
    "GradientDescent": {"lr": 0.1},
    "ProximalGradientDescent": {"lr": 0.1, "l1": 0.01, "l2": 0.01},
    "Momentum": {"lr": 0.1, "momentum": 0.9, "nesterov": True},
    "Adagrad": {"lr": 0.1},
    "ProximalAdagrad": {"lr": 0.1, "l1": 0.001},
    "Adam": {"lr": 0.01},
    "RMSProp": {"lr": 0.01, "momentum": 0.9, "centered": True},
    "Adadelta": {"lr": 0.5},
    "Ftrl": {"lr": 0.1, "l1": 0.01},
}
DIM = 4
FEATURES = ("user", "friend")


def tables(average=True, **options):
    """A table of two features. options: the table's."""
    given = {"pooling": "sum", "initializer": Normal(std=0.3), **options}
    return IdEmbeddings([IdTable("people", DIM, FEATURES, **given)], seed=7, average=average)


def loss_of(found, targets):
    """Of pooled vectors {feature: [bags, dim]}; the sum over the bags."""
    together = torch.cat([found[name] for name in FEATURES])
    return ((together - targets) ** 2).sum()


class Declared:
    """The same table, with a row for each of `ids` from the beginning."""

    def __init__(self, ids, kind, settings, mode="sum"):
        self.row = {one: row for row, one in enumerate(ids)}
        table = tables(unknown="initial", pooling=None).eval()
        ids = torch.tensor(list(ids))
        values = table(dict.fromkeys(FEATURES, ids))[FEATURES[0]]
        self.bags = torch.nn.EmbeddingBag.from_pretrained(
            values.clone(), freeze=False, mode=mode, sparse=True, include_last_offset=True
        )
        self.met = set()
        kind = getattr(optimizers, kind)
        self.optimizer = kind(self.bags.parameters(), rows="touched", **settings)

    def step(self, features, targets):
        """features: {name: (ids, offsets[, weights])}."""
        found = {}
        for name, (ids, offsets, *weights) in features.items():
            self.met.update(ids.tolist())
            rows = torch.tensor([self.row[one] for one in ids.tolist()], dtype=torch.int64)
            found[name] = self.bags(rows, offsets, *weights)
        self.optimizer.zero_grad()
        loss = loss_of(found, targets)
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    def columns(self):
        """{id: {"value" or slot: [dim]}} of the ids that were met."""
        state = self.optimizer.state[self.bags.weight]
        columns = {"value": self.bags.weight.detach(), **state}
        columns.pop("step", None)
        return {
            one: {name: column[self.row[one]] for name, column in columns.items()}
            for one in self.met
        }


def columns_of(table, name="people"):
    """The same of an IdEmbeddings, of this process's rows."""
    store = table.stores[name]
    columns = store.columns()
    return {
        int(one): {name: column[row].clone() for name, column in columns.items()}
        for row, one in enumerate(store.ids)
    }


def assert_same(found, wanted, tolerance=1e-5):
    assert sorted(found) == sorted(wanted)
    for one, columns in wanted.items():
        assert sorted(found[one]) == sorted(columns)
        for name, value in columns.items():
            np.testing.assert_allclose(
                found[one][name], value, rtol=tolerance, atol=tolerance, err_msg=f"{one} {name}"
            )


def refused(error, call):
    """The message of the error that a call raises."""
    with pytest.raises(error) as raised:
        call()
    return str(raised.value)
