"""Modules and optimizers from the `model.json` of a converted checkpoint."""

from __future__ import annotations

import importlib
import json
import os
from typing import Any, Dict, Mapping, Optional

import torch
from torchrec.modules.embedding_configs import EmbeddingBagConfig, PoolingType
from torchrec.modules.embedding_modules import EmbeddingBagCollection
from torchrec.optim.apply_optimizer_in_backward import apply_optimizer_in_backward

from migrate.models import FILE, SCHEMA
from migrate.torchrec.modules import DATA_TYPES
from semisync.errors import BadInput, UsageError

_POOLINGS = {"sum": PoolingType.SUM, "mean": PoolingType.MEAN}


def read_model(directory: str) -> Dict[str, Any]:
    """The model config in `directory`; BadInput where there is none."""
    path = os.path.join(os.fspath(directory), FILE)
    try:
        with open(path, encoding="utf-8") as file:
            config = json.load(file)
    except (OSError, ValueError) as error:
        raise BadInput(
            f"{path} cannot be read ({error}); give a directory that `semisync convert` wrote"
        ) from error
    if not isinstance(config, dict) or config.get("schema") != SCHEMA:
        raise BadInput(f"{path} is not a model config of schema {SCHEMA}")
    return config


def build(
    config: Mapping[str, Any], device: Optional[torch.device] = None, fused: bool = False
) -> EmbeddingBagCollection:
    """The EmbeddingBagCollection that `config` describes, still to be filled with `load`.

    config: as `read_model` gives it, edited or not. fused: give each table's optimizer to
    apply_optimizer_in_backward, for DistributedModelParallel's fused kernels; without it,
    `build_optimizer` makes optimizers that step after the backward pass.
    Raises UsageError where the config leaves something open or has no fused optimizer.
    """
    configs = []
    for table in config["tables"]:
        if table["pooling"] not in _POOLINGS:
            raise UsageError(
                f"table {table['name']!r} has pooling {table['pooling']!r}, expected one of "
                f"{sorted(_POOLINGS)}; TensorFlow's default combiner is the mean, a look-up "
                "without one is summed or not pooled; set it in the plan or in the model config"
            )
        if table["dtype"] not in DATA_TYPES:
            raise UsageError(
                f"table {table['name']!r} is {table['dtype']}; TorchRec has {', '.join(DATA_TYPES)}"
            )
        configs.append(
            EmbeddingBagConfig(
                name=table["name"],
                num_embeddings=table["rows"],
                embedding_dim=table["dim"],
                feature_names=list(table["features"]),
                pooling=_POOLINGS[table["pooling"]],
                data_type=DATA_TYPES[table["dtype"]],
            )
        )
    ebc = EmbeddingBagCollection(tables=configs, device=device)
    for table in config["tables"] if fused else ():
        optimizer = table["optimizer"]
        if not optimizer or not optimizer["fused"]:
            raise UsageError(
                f"no fused optimizer of TorchRec computes what trained table {table['name']!r}; "
                "use build_optimizer"
            )
        parameters = [ebc.embedding_bags[table["name"]].weight]
        apply_optimizer_in_backward(_class(table), parameters, _arguments(table))
    return ebc


def build_optimizer(config: Mapping[str, Any], ebc: EmbeddingBagCollection) -> Dict[str, Any]:
    """One optimizer a table that has one, by the table's name; `load_optimizer` fills each."""
    return {
        table["name"]: _class(table)(
            [ebc.embedding_bags[table["name"]].weight], **_arguments(table)
        )
        for table in config["tables"]
        if table["optimizer"]
    }


def _class(table: Mapping[str, Any]) -> Any:
    name = table["optimizer"]["class"]
    if name is None:
        raise UsageError(
            f"no optimizer of torch computes what {table['optimizer']['tensorflow']} did for table "
            f"{table['name']!r}; name one in the model config"
        )
    module, _, leaf = name.rpartition(".")
    return getattr(importlib.import_module(module), leaf)


def _arguments(table: Mapping[str, Any]) -> Dict[str, Any]:
    arguments = dict(table["optimizer"]["arguments"])
    if "lr" not in arguments:
        raise UsageError(
            f"the MetaGraph does not tell the learning rate of table {table['name']!r} as a "
            "constant; set lr in the model config"
        )
    return arguments
