"""Modules and optimizers from the `model.json` of a converted checkpoint."""

from __future__ import annotations

import importlib
from contextlib import contextmanager
from typing import Any, Dict, Iterator, List, Mapping, Optional, Union

import torch
from torchrec.modules.embedding_configs import EmbeddingBagConfig, EmbeddingConfig, PoolingType
from torchrec.modules.embedding_modules import EmbeddingBagCollection
from torchrec.modules.mc_embedding_modules import ManagedCollisionEmbeddingBagCollection
from torchrec.optim.apply_optimizer_in_backward import apply_optimizer_in_backward

from migrate.graph.pooling import without_kernel
from migrate.manifest.id_modes import MANAGED
from migrate.manifest.model_json import (
    IdsConfig,
    ModelConfig,
    OptimizerConfig,
    TableConfig,
    checked_model,
)
from migrate.optimizers.registry import CLASSES
from migrate.torchrec.embeddings import (
    Config,
    Embeddings,
    collection,
    collection_name,
    table_weights,
)
from migrate.torchrec.modules import data_type
from semisync.common.errors import UsageError

Built = Union[EmbeddingBagCollection, ManagedCollisionEmbeddingBagCollection, Embeddings]

_POOLINGS = {"sum": PoolingType.SUM, "mean": PoolingType.MEAN}


def build(
    config: Mapping[str, Any], device: Optional[torch.device] = None, fused: bool = False
) -> Built:
    """The tables that `config` describes, still to be filled with `load`.

    Args:
        config: as `read_model` gives it, edited or not.
        device: of the weights; None: the CPU.
        fused: give each table's optimizer to apply_optimizer_in_backward, for
            DistributedModelParallel's fused kernels; without it, `build_optimizer` makes optimizers
            that step after the backward pass.

    Returns:
        An EmbeddingBagCollection; a ManagedCollisionEmbeddingBagCollection for tables with --ids
        mch or mpzch, whose ids are raw; or an `Embeddings` of several collections where neither can
        hold them all (some by raw ids, 8-bit rows, tables that are not pooled, tables for the CPU).
        Static tables are frozen.

    Raises:
        UsageError: the config leaves something open, or has no fused optimizer.
        BadInput: a key of the config is missing, unknown or of the wrong type.

    Examples:
        >>> from torchrec import KeyedJaggedTensor
        >>> from migrate.torchrec import build, load, read_model
        >>> config = read_model("by_id")
        >>> config["tables"][0].update(features=["user"], pooling="sum")
        >>> tables = build(config)
        >>> loaded = load(tables, "by_id")
        >>> rows = KeyedJaggedTensor(["user"], torch.tensor([0, 1]), lengths=torch.tensor([1, 1]))
        >>> tables(rows)["user"].tolist()
        [[3.0, 4.0], [5.0, 6.0]]
    """
    where = torch.device("cpu") if device is None else device
    model = checked_model(config)
    ids = _raw_ids(model)
    members: Dict[str, List[Config]] = {}
    for table in model["tables"]:
        embedding = _config(table)
        name = collection_name(
            embedding,
            int8=table["dtype"] == "int8",
            weighted=table.get("weighted", False),
            managed=table["name"] in ids,
            on_cpu=table.get("placement") == "cpu",
        )
        members.setdefault(name, []).append(embedding)
    collections = {name: collection(name, tables, ids, where) for name, tables in members.items()}
    alone = list(collections) in (["ebc"], ["mc_ebc"])
    module = next(iter(collections.values())) if alone else Embeddings(collections)
    weights = table_weights(module)
    for table in model["tables"]:
        if fused and table["dtype"] != "int8":
            _fuse(table, weights[table["name"]])
        if table.get("static") and table["name"] in weights:
            weights[table["name"]].requires_grad_(False)
    return module


def _raw_ids(model: ModelConfig) -> Dict[str, IdsConfig]:
    """The config's entries on ids, by table, for those whose module looks raw ids up."""
    raw = {}
    for table in model["tables"]:
        ids: IdsConfig = table.get("ids") or {"mode": "rows"}
        if ids["mode"] == "dynamicemb":
            raise UsageError(
                f"table {table['name']!r} is in files for NVIDIA's dynamicemb, which builds it "
                "and loads them; remove it from the config"
            )
        if ids["mode"] not in ("rows", *MANAGED):
            raise UsageError(
                f"table {table['name']!r} has ids {ids['mode']!r}, expected one of rows, "
                f"{', '.join(MANAGED)}"
            )
        if ids["mode"] in MANAGED:
            raw[table["name"]] = ids
    return raw


def _config(table: TableConfig) -> Config:
    pooling = table["pooling"]
    lacking = without_kernel(pooling, table.get("weighted", False))
    if lacking:
        raise UsageError(f"table {table['name']!r}: {lacking}")
    if pooling not in (*_POOLINGS, "none"):
        raise UsageError(
            f"table {table['name']!r} has pooling {pooling!r}, expected one of "
            f"{sorted([*_POOLINGS, 'none'])}; TensorFlow's default combiner is the mean, a look-up "
            "without one is summed or not pooled; set it in the plan or in the model config"
        )
    if not (table["rows"] and table["dim"]):
        raise UsageError(
            f"table {table['name']!r} is {table['rows']} x {table['dim']}, and TorchRec has no "
            "empty tables; leave it out of the model config"
        )
    known: Dict[str, Any] = {
        "name": table["name"],
        "num_embeddings": table["rows"],
        "embedding_dim": table["dim"],
        "feature_names": list(table["features"]),
        "data_type": data_type(table["name"], table["dtype"]),
    }
    if pooling == "none":
        return EmbeddingConfig(**known)
    return EmbeddingBagConfig(**known, pooling=_POOLINGS[pooling])


def _fuse(table: TableConfig, weight: torch.nn.Parameter) -> None:
    """Gives the table's optimizer to the backward pass. Fused kernels update frozen tables too:
    SGD with a learning rate of zero leaves them as they are, and has no state."""
    optimizer = table["optimizer"]
    if table.get("static"):
        apply_optimizer_in_backward(torch.optim.SGD, [weight], {"lr": 0.0})
    elif not optimizer or not optimizer["fused"]:
        raise UsageError(
            f"no fused optimizer of TorchRec computes what trained table {table['name']!r}; "
            "use build_optimizer"
        )
    else:
        class_ = _class(optimizer, table["name"])
        arguments = _arguments(optimizer, table["name"])
        with _refused(optimizer, table["name"]):
            apply_optimizer_in_backward(class_, [weight], arguments)


def build_optimizer(config: Mapping[str, Any], module: torch.nn.Module) -> Dict[str, Any]:
    """One optimizer per table that has one; `load_optimizer` fills each.

    Args:
        config: as `read_model` gives it.
        module: from `build`.

    Returns:
        {table: optimizer}.

    Raises:
        UsageError, BadInput: as `build`.

    Examples:
        >>> from migrate.torchrec import build, build_optimizer, read_model
        >>> config = read_model("converted")
        >>> for table in config["tables"]:
        ...     table.update(features=[table["name"]], pooling="sum")
        >>> sorted(build_optimizer(config, build(config)))
        ['cities', 'products']
    """
    weights = table_weights(module)
    optimizers = {}
    for table in checked_model(config)["tables"]:
        name, optimizer = table["name"], table["optimizer"]
        if optimizer:
            class_, arguments = _class(optimizer, name), _arguments(optimizer, name)
            with _refused(optimizer, name):
                optimizers[name] = class_([weights[name]], **arguments)
    return optimizers


@contextmanager
def _refused(optimizer: OptimizerConfig, table: str) -> Iterator[None]:
    """Raises UsageError if an optimizer does not take its arguments."""
    try:
        yield
    except (TypeError, ValueError) as error:
        raise UsageError(
            f"{optimizer['class']} of table {table!r} does not take the arguments "
            f"{optimizer['arguments']}: {error}; change them in the model config"
        ) from error


def _class(optimizer: OptimizerConfig, table: str) -> Any:
    path = optimizer["class"]
    if path is None:
        raise UsageError(
            f"no optimizer of torch computes what {optimizer['tensorflow']} did for table "
            f"{table!r}; name one in the model config"
        )
    if path not in CLASSES:  # an import runs the module's code, and the file may be a stranger's
        raise UsageError(
            f"the optimizer class {path!r} of table {table!r} is not one that a conversion names "
            f"({', '.join(sorted(CLASSES))}); make another yourself, and fill it with "
            "load_optimizer"
        )
    module, _, leaf = path.rpartition(".")
    return getattr(importlib.import_module(module), leaf)


def _arguments(optimizer: OptimizerConfig, table: str) -> Dict[str, Any]:
    arguments = dict(optimizer["arguments"])
    if "lr" not in arguments:
        raise UsageError(
            f"the MetaGraph does not tell the learning rate of table {table!r} as a "
            "constant; set lr in the model config"
        )
    return arguments
