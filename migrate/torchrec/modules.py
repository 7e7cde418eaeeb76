"""An EmbeddingBagCollection with the tables of a converted checkpoint."""

from __future__ import annotations

import os
from typing import Mapping, Optional, Sequence, Union

import torch
from torchrec.modules.embedding_configs import DataType, EmbeddingBagConfig, PoolingType
from torchrec.modules.embedding_modules import EmbeddingBagCollection

from migrate.manifest import Manifest, read_manifest
from semisync.errors import UsageError

DATA_TYPES = {
    "float32": DataType.FP32,
    "float16": DataType.FP16,
    "bfloat16": DataType.BF16,
}


def data_type(table: str, dtype: str) -> DataType:
    """TorchRec's type of a table; UsageError where it has none."""
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
    """The tables that `features` names, with their rows, dims and data types.

    converted: a manifest, or the directory it stands in. features: table -> the features that it
    embeds. pooling: of every table; TensorFlow's default combiner is the mean, but its weighted
    mean divides by the sum of the weights, which FBGEMM does not.
    Raises UsageError for a table that the checkpoint lacks or a type that TorchRec lacks.
    """
    manifest = converted if isinstance(converted, Manifest) else read_manifest(os.fspath(converted))
    tables = {table.name: table for table in manifest.tables}
    configs = []
    for name, embedded in features.items():
        if name not in tables:
            raise UsageError(f"there is no table {name!r}, expected one of {sorted(tables)}")
        table = tables[name]
        if table.dtype == "int8":
            raise UsageError(
                f"table {name!r} has int8 rows, which an EmbeddingBagCollection cannot hold; use "
                "migrate.torchrec.build(read_model(directory))"
            )
        configs.append(
            EmbeddingBagConfig(
                name=name,
                num_embeddings=table.rows,
                embedding_dim=table.dim,
                feature_names=list(embedded),
                pooling=pooling,
                data_type=data_type(name, table.dtype),
            )
        )
    return EmbeddingBagCollection(tables=configs, device=device)
