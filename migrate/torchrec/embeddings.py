"""The modules behind a model config, one collection for each kind of table.

    ebc             pooled floats: EmbeddingBagCollection
    ec_<dim>        not pooled: EmbeddingCollection, which wants one dim
    int8_ebc        pooled 8-bit rows: the EmbeddingBagCollection of torchrec.quant
    int8_ec_<dim>   8-bit rows, not pooled
    weighted_...    pooled with a weight per id
    mc_...          floats, looked up by raw ids: ManagedCollisionEmbeddingBagCollection, and
                    ManagedCollisionEmbeddingCollection
    cpu_...         any of these, of tables whose placement is the CPU

Features with weights are for the weighted collections; the others use the ids only.
`load` fills all of them. The 8-bit ones have buffers and no parameters.
"""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Union

import torch
from torchrec import JaggedTensor, KeyedJaggedTensor, KeyedTensor
from torchrec.modules.embedding_configs import EmbeddingBagConfig, EmbeddingConfig
from torchrec.modules.embedding_modules import EmbeddingBagCollection, EmbeddingCollection
from torchrec.quant import embedding_modules as quant

from migrate.manifest.model_json import IdsConfig
from migrate.manifest.quantization import GPU_ROW_ALIGNMENT
from migrate.torchrec.managed import with_raw_ids

CPU, MANAGED, WEIGHTED, INT8 = "cpu_", "mc_", "weighted_", "int8_"

Config = Union[EmbeddingBagConfig, EmbeddingConfig]
Vectors = Union[torch.Tensor, JaggedTensor]


class Embeddings(torch.nn.Module):
    """Several collections, looked up together.

    The result of a look-up has an entry for each feature: [batch, dim] where its table is pooled,
    else a JaggedTensor with a vector per id.

    Args:
        collections: as above.
    """

    def __init__(self, collections: Mapping[str, torch.nn.Module]) -> None:
        super().__init__()
        self.collections = torch.nn.ModuleDict(dict(collections))

    def forward(self, features: KeyedJaggedTensor) -> Dict[str, Vectors]:
        """Looks up every feature of every collection; the result is on the features' device."""
        by_feature: Dict[str, Vectors] = {}
        device = features.device()
        for name, collection in self.collections.items():
            there = features.to(torch.device("cpu")) if name.startswith(CPU) else features
            vectors = collection(there)
            if isinstance(vectors, tuple):
                vectors, _ = vectors  # raw ids; the other is None
            vectors = vectors.to_dict() if isinstance(vectors, KeyedTensor) else vectors
            by_feature.update({feature: vector.to(device) for feature, vector in vectors.items()})
        return by_feature


def collection_name(config: Config, int8: bool, weighted: bool, managed: bool, on_cpu: bool) -> str:
    """The name of the collection that a table belongs to."""
    pooled = isinstance(config, EmbeddingBagConfig)
    kind = "ebc" if pooled else f"ec_{config.embedding_dim}"
    plain = WEIGHTED * (weighted and pooled) + INT8 * int8 + kind
    return CPU * on_cpu + MANAGED * managed + plain


def collection(
    name: str, tables: List[Any], ids: Mapping[str, IdsConfig], device: torch.device
) -> torch.nn.Module:
    """The collection `name` of `tables`; on the CPU where its name says so.

    Args:
        ids: of each of the tables, as the model config has them.
    """
    if name.startswith(CPU):
        return collection(name[len(CPU) :], tables, ids, torch.device("cpu"))
    if name.startswith(MANAGED):
        return with_raw_ids(collection(name[len(MANAGED) :], tables, ids, device), ids, device)
    weighted = {"is_weighted": name.startswith(WEIGHTED)} if name.endswith("ebc") else {}
    if INT8 not in name:
        kind = EmbeddingBagCollection if weighted else EmbeddingCollection
        return kind(tables=tables, device=device, **weighted)
    alignment = 1 if device.type == "cpu" else GPU_ROW_ALIGNMENT
    quantized = quant.EmbeddingBagCollection if weighted else quant.EmbeddingCollection
    return quantized(tables=tables, device=device, row_alignment=alignment, **weighted)


def table_weights(module: torch.nn.Module) -> Dict[str, torch.nn.Parameter]:
    """The parameters of `module` that are tables of floats, by the table's name."""
    weights = {}
    for name, parameter in module.named_parameters():
        container, _, leaf = name.rpartition(".")
        if leaf == "weight" and container.rpartition(".")[0].rpartition(".")[2] in (
            "embedding_bags",
            "embeddings",
        ):
            weights[container.rpartition(".")[2]] = parameter
    return weights
