"""An EmbeddingBagCollection with the tables of a converted checkpoint, by rows or by raw ids."""

from __future__ import annotations

import os
from typing import Dict, Iterator, Mapping, Optional, Sequence, Union

import torch
from torchrec.modules.embedding_configs import DataType, EmbeddingBagConfig, PoolingType
from torchrec.modules.embedding_modules import EmbeddingBagCollection
from torchrec.modules.mc_embedding_modules import ManagedCollisionEmbeddingBagCollection

from migrate.manifest.id_modes import MANAGED
from migrate.manifest.manifest import Manifest, read_manifest
from migrate.manifest.model_json import IdsConfig, ids_config
from migrate.torchrec.managed import with_raw_ids
from semisync.common.errors import UsageError

DATA_TYPES = {
    "float32": DataType.FP32,
    "float16": DataType.FP16,
    "bfloat16": DataType.BF16,
}


def data_type(table: str, dtype: str) -> DataType:
    """TorchRec's type of a table; raises UsageError if it has none."""
    if dtype == "int8":
        return DataType.INT8  # quantized rows
    if dtype not in DATA_TYPES:
        raise UsageError(f"table {table!r} is {dtype}; TorchRec has {', '.join(DATA_TYPES)}")
    return DATA_TYPES[dtype]


def embedding_bag_collection(
    converted: Union[Manifest, str],
    features: Mapping[str, Sequence[str]],
    pooling: PoolingType = PoolingType.SUM,
    device: Optional[torch.device] = None,
) -> EmbeddingBagCollection:
    """The tables that `features` names, with their rows, dims and types; `load` fills them.

    Args:
        converted: a manifest, or the directory that has it.
        features: table -> the features that it embeds.
        pooling: of every table; TensorFlow's default combiner is the mean, but its weighted mean
            divides by the sum of the weights, which FBGEMM does not.
        device: of the weights; None: the CPU.

    Returns:
        An EmbeddingBagCollection.

    Raises:
        UsageError: a table that the checkpoint lacks, or a type that TorchRec lacks.

    Examples:
        >>> from migrate.torchrec import embedding_bag_collection, load
        >>> tables = embedding_bag_collection("converted", {"products": ["item"]})
        >>> load(tables, "converted")
        ['ebc.embedding_bags.products.weight']
    """
    configs = list(_configs(_manifest(converted), features, pooling))
    return EmbeddingBagCollection(tables=configs, device=device)


def managed_collision_collection(
    converted: Union[Manifest, str],
    features: Mapping[str, Sequence[str]],
    pooling: PoolingType = PoolingType.SUM,
    device: Optional[torch.device] = None,
    eviction_interval: Optional[int] = None,
) -> ManagedCollisionEmbeddingBagCollection:
    """The tables that `features` names, converted with --ids mch or mpzch, looked up by raw ids.

    mpzch takes new ids in at once while it trains, on a GPU only; here without eviction. Static
    tables are frozen, and where the tables have weighted ids so has the collection.

    Args:
        converted, features, pooling, device: as in `embedding_bag_collection`.
        eviction_interval: batches after which MCHManagedCollisionModule, with its DistanceLFU
            policy, takes new ids in; by default it never does.

    Returns:
        A ManagedCollisionEmbeddingBagCollection.

    Raises:
        UsageError: a table that the checkpoint lacks, or that has no raw ids; an interval below 1.

    Examples:
        >>> from migrate.torchrec import load, managed_collision_collection
        >>> checkpoint = migrate.open_checkpoint("users.model")
        >>> manifest = migrate.convert(migrate.plan(checkpoint, ids="mch"), "raw")
        >>> tables = managed_collision_collection("raw", {"users_model": ["user"]})
        >>> loaded = load(tables, "raw")
    """
    if eviction_interval is not None and eviction_interval < 1:
        raise UsageError(f"eviction_interval is {eviction_interval}, expected at least 1")
    manifest = _manifest(converted)
    device = device or torch.device("cpu")
    configs = list(_configs(manifest, features, pooling))
    tables = {table.name: table for table in manifest.tables}
    every: Dict[str, IdsConfig] = {}
    for name in features:
        ids = ids_config(tables[name].ids)
        if ids is None or ids["mode"] not in MANAGED:
            raise UsageError(
                f"table {name!r} has no raw ids; convert it with --ids mch or mpzch, or use "
                "embedding_bag_collection"
            )
        ids["eviction_interval"] = eviction_interval
        every[name] = ids
    weighted = {tables[name].weighted for name in features}
    if len(weighted) > 1:
        raise UsageError(
            "some of these tables have weighted ids and some do not; make a collection of each"
        )
    ebc = EmbeddingBagCollection(tables=configs, device=device, is_weighted=weighted == {True})
    for name in features:
        if tables[name].static:
            ebc.embedding_bags[name].weight.requires_grad_(False)
    return with_raw_ids(ebc, every, device)


def _manifest(converted: Union[Manifest, str]) -> Manifest:
    return converted if isinstance(converted, Manifest) else read_manifest(os.fspath(converted))


def _configs(
    manifest: Manifest, features: Mapping[str, Sequence[str]], pooling: PoolingType
) -> Iterator[EmbeddingBagConfig]:
    tables = {table.name: table for table in manifest.tables}
    for name, embedded in features.items():
        if name not in tables:
            raise UsageError(f"there is no table {name!r}, expected one of {sorted(tables)}")
        table = tables[name]
        if table.dtype == "int8":
            raise UsageError(
                f"table {name!r} has int8 rows, which an EmbeddingBagCollection cannot hold; use "
                "migrate.torchrec.build(read_model(directory))"
            )
        yield EmbeddingBagConfig(
            name=name,
            num_embeddings=table.rows,
            embedding_dim=table.dim,
            feature_names=list(embedded),
            pooling=pooling,
            data_type=data_type(name, table.dtype),
        )
