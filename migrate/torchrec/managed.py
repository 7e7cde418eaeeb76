"""Raw ids in TorchRec: the modules that find their rows, and the collections that have them.

They are built from the model config's entry on a table's `ids`
(migrate.manifest.model_json).
"""

from __future__ import annotations

from typing import Dict, Mapping, Union

import torch
from torchrec.modules.embedding_modules import EmbeddingBagCollection, EmbeddingCollection
from torchrec.modules.hash_mc_modules import HashZchManagedCollisionModule
from torchrec.modules.mc_embedding_modules import (
    ManagedCollisionEmbeddingBagCollection,
    ManagedCollisionEmbeddingCollection,
)
from torchrec.modules.mc_modules import (
    DistanceLFU_EvictionPolicy,
    ManagedCollisionCollection,
    ManagedCollisionModule,
    MCHManagedCollisionModule,
)
from torchrec.sparse.jagged_tensor import JaggedTensor

from migrate.manifest.model_json import IdsConfig


class _Fixed(MCHManagedCollisionModule):
    """One whose ids stay as they are.

    TorchRec's keeps the ids that it meets until it next takes new ones in, and its first batch of
    training makes room for as many batches as the interval has.
    """

    def profile(self, features: Dict[str, JaggedTensor]) -> Dict[str, JaggedTensor]:
        return features


def with_raw_ids(
    collection: Union[EmbeddingBagCollection, EmbeddingCollection],
    ids: Mapping[str, IdsConfig],
    device: torch.device,
) -> Union[ManagedCollisionEmbeddingBagCollection, ManagedCollisionEmbeddingCollection]:
    """`collection`, looked up by raw ids.

    Args:
        ids: of each of its tables, with a mode of `migrate.manifest.id_modes.MANAGED`.
    """
    pooled = isinstance(collection, EmbeddingBagCollection)
    configs = collection.embedding_bag_configs() if pooled else collection.embedding_configs()
    modules: Dict[str, ManagedCollisionModule] = {
        config.name: _module(ids[config.name], config.num_embeddings, device) for config in configs
    }
    kind = ManagedCollisionEmbeddingBagCollection if pooled else ManagedCollisionEmbeddingCollection
    return kind(collection, ManagedCollisionCollection(modules, configs))


def _module(ids: IdsConfig, rows: int, device: torch.device) -> ManagedCollisionModule:
    """The module that finds the row of an id among `rows`."""
    if ids["mode"] == "mch":
        interval = ids["eviction_interval"]
        kind = _Fixed if interval is None else MCHManagedCollisionModule
        return kind(
            zch_size=rows,
            device=device,
            eviction_policy=DistanceLFU_EvictionPolicy(),
            eviction_interval=1 if interval is None else interval,
        )
    return HashZchManagedCollisionModule(
        zch_size=rows,
        device=device,
        total_num_buckets=ids["buckets"],
        max_probe=ids["max_probe"],
    )
