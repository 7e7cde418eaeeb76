"""The table of items, from rows of a catalog to their vectors.

    ids         rows by raw id, of `migrate.id_tables`: each with one process, which one its id says
    torchrec    an EmbeddingCollection, whose rows DistributedModelParallel deals out

Both keep the catalog, so that a checkpoint says which item a row is of.
"""

from __future__ import annotations

import functools
from typing import Optional

import numpy
import torch
from torch import Tensor, nn
from torchrec import EmbeddingCollection, EmbeddingConfig, KeyedJaggedTensor

from migrate.id_tables import IdEmbeddings, IdTable, Normal

ITEM, USER = "item", "user"  # the kinds of ids
_STD = 0.02  # of new vectors


class ById(nn.Module):
    """Rows int64 [n] to the vectors [n, dim] of their raw ids, of `migrate.id_tables`.

    With `with_users` the rows after the catalog's are those of `users`.

    Args:
        catalog: raw ids, int64 [rows]; the state keeps them.

    Attributes:
        users: raw ids, int64, of the data in use.
    """

    catalog: Tensor

    def __init__(
        self, catalog: numpy.ndarray, dim: int, seed: int, with_users: bool = False
    ) -> None:
        super().__init__()
        self.users: Optional[Tensor] = torch.empty(0, dtype=torch.int64) if with_users else None
        self.register_buffer("catalog", torch.from_numpy(catalog))
        begin = Normal(std=_STD)
        self.tables = IdEmbeddings(
            [
                IdTable(name, dim, [name], None, begin, unknown="initial")
                for name in ((ITEM, USER) if with_users else (ITEM,))
            ],
            seed=seed,
        )

    def forward(self, rows: Tensor) -> Tensor:
        """Vectors on the device of `rows`, of tables in CPU memory; all processes call it."""
        return self._found(rows.cpu()).to(rows.device)

    def _found(self, rows: Tensor) -> Tensor:
        if self.users is None:
            found: Tensor = self.tables({ITEM: self.catalog[rows]})[ITEM]
            return found
        item = rows < len(self.catalog)
        users = self.users[rows[~item] - len(self.catalog)]
        of = self.tables({ITEM: self.catalog[rows[item]], USER: users})
        places = torch.empty_like(rows)  # of each row, in the vectors of items and then of users
        places[torch.cat([item.nonzero(), (~item).nonzero()]).squeeze(1)] = torch.arange(len(rows))
        return torch.cat([of[ITEM], of[USER]])[places]

    def begin(self, kind: str, ids: numpy.ndarray, vectors: Tensor) -> None:
        """Gives new ids of a kind, all different, these vectors; every process calls it."""
        own = self.tables.processes.own(ids)
        store = self.tables.store(kind)
        first = store.add(numpy.ascontiguousarray(ids[own]))
        store.weight.data[first : store.count] = vectors[torch.from_numpy(own)]


class Collected(nn.Module):
    """Rows int64 [n] to vectors [n, dim] of TorchRec; the arguments are those of `ById`."""

    catalog: Tensor

    def __init__(self, catalog: numpy.ndarray, dim: int, seed: int) -> None:
        super().__init__()
        self.register_buffer("catalog", torch.from_numpy(catalog))
        begin = functools.partial(nn.init.normal_, std=_STD)
        with torch.random.fork_rng(devices=()):
            torch.manual_seed(seed)
            table = EmbeddingConfig(
                name=ITEM,
                num_embeddings=len(catalog),
                embedding_dim=dim,
                feature_names=[ITEM],
                init_fn=begin,
            )
            self.collection = EmbeddingCollection(tables=[table])

    def forward(self, rows: Tensor) -> Tensor:
        """The vectors of `rows`, [n, dim]; all processes call it."""
        lengths = torch.tensor([len(rows)], device=rows.device)
        features = KeyedJaggedTensor([ITEM], rows, lengths=lengths)
        found: Tensor = self.collection(features)[ITEM].values()
        return found

    def begin(self, kind: str, ids: numpy.ndarray, vectors: Tensor) -> None:
        """Gives items of the catalog these vectors; before the rows are dealt out."""
        assert kind == ITEM
        rows = torch.from_numpy(numpy.searchsorted(self.catalog.numpy(), ids))
        self.collection.embeddings[ITEM].weight.data[rows] = vectors
