"""The embedding tables in the collections of a module that is not sharded."""

from __future__ import annotations

from typing import Iterator, NamedTuple

from torch import nn
from torchrec import EmbeddingBagCollection, EmbeddingCollection


class Place(NamedTuple):
    """A table.

    Attributes:
        path: its collection's in the module.
        name: in the collection.
        members: the modules of the collection's tables, by name.
        attribute: the weight's in the module.
    """

    path: str
    name: str
    members: nn.ModuleDict
    attribute: str


def tables_of(module: nn.Module) -> Iterator[Place]:
    """Each table of each EmbeddingBagCollection and EmbeddingCollection."""
    for path, inner in list(module.named_modules()):
        if isinstance(inner, EmbeddingBagCollection):
            container, members = "embedding_bags", inner.embedding_bags
        elif isinstance(inner, EmbeddingCollection):
            container, members = "embeddings", inner.embeddings
        else:
            continue
        for name in list(members):
            inside = f"{path}.{container}" if path else container
            yield Place(path, name, members, f"{inside}.{name}.weight")
