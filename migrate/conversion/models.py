"""`model.json` beside a converted checkpoint: what builds the modules that it fills.

    {"schema": "semisync.model/1", "module": "ebc", "tables": [
      {"name": "user", "rows": 31, "dim": 8, "dtype": "float32",
       "features": ["user"], "pooling": "sum", "weighted": false,
       "static": null, "placement": null, "ids": null,
       "optimizer": {"tensorflow": "Adagrad", "class": "torch.optim.Adagrad",
                     "arguments": {"lr": 0.1, "eps": 0.0}, "fused": true}}]}

It is data that any program can read; `migrate.torchrec.build` builds from it.

pooling    null where the plan does not say it; weighted: whether each id has a weight
static     null, or the type of a table that is trained no more: dtype is that type ("int8" for the
           rows of migrate.manifest.quantization), optimizer is null
placement  "device", "uvm" or "cpu", see migrate.torchrec.placement; null: as the planner chooses
ids        null where an id is the number of its row; else {"mode": one of
migrate.manifest.modes.MODES}
           with, for "mch", eviction_interval: batches after which new ids are taken in, null for
           never; for "mpzch", buckets and max_probe, as HashZchManagedCollisionModule takes them
class      a torch optimizer with the arguments that make it compute what TensorFlow's did, null
           where there is none; lr is left out where the MetaGraph has it not as a constant
fused      whether TorchRec's fused kernels compute the same, given to apply_optimizer_in_backward
"""

from __future__ import annotations

import json
import os
from typing import Any, Dict, List, Optional, Set, Tuple

from migrate.manifest.model import Ids, Manifest, TableSummary
from migrate.planning.semantics import ADAMS
from semisync.common.errors import BadInput

SCHEMA = "semisync.model/1"
FILE = "model.json"
_OF_DATA = ("name", "rows", "dim", "dtype", "static")

_MAX_PROBE = 128  # which HashZchManagedCollisionModule has by default
_OWN = "migrate.torchrec.optimizers."

# TensorFlow's word for a hyperparameter -> the argument of the torch optimizer.
_ARGUMENTS = {"learning_rate": "lr", "epsilon": "eps"}
_FLAGS = {"nesterov"}


_KEPT: Dict[str, Tuple[str, Tuple[str, ...], Dict[str, Any], bool]] = {
    # class, hyperparameters that it takes, arguments that are always given, fused
    "Adagrad": ("torch.optim.Adagrad", ("learning_rate", "epsilon"), {"eps": 0.0}, True),
    "Adam": (_OWN + "Adam", ("learning_rate", "beta1", "beta2", "epsilon"), {"rows": "all"}, False),
    "LazyAdam": (
        _OWN + "Adam",
        ("learning_rate", "beta1", "beta2", "epsilon"),
        {"rows": "touched"},
        False,
    ),
    "AdamAsync": (
        _OWN + "Adam",
        ("learning_rate", "beta1", "beta2", "epsilon"),
        {"rows": "touched"},
        False,
    ),
    "Momentum": (_OWN + "Momentum", ("learning_rate", "momentum", "nesterov"), {}, False),
    "RMSProp": (_OWN + "RMSProp", ("learning_rate", "decay", "momentum", "epsilon"), {}, False),
    "Ftrl": (_OWN + "Ftrl", ("learning_rate", "l1", "l2", "l2_shrinkage"), {}, False),
}


def model_config(manifest: Manifest) -> Dict[str, Any]:
    """The content of `model.json`."""
    names = {written.fqn for written in manifest.tensors}
    return {
        "schema": SCHEMA,
        "module": manifest.module,
        "tables": [
            {
                "name": table.name,
                "rows": table.rows,
                "dim": table.dim,
                "dtype": table.dtype,
                "features": table.features,
                "pooling": table.pooling,
                "weighted": table.weighted,
                "static": table.static,
                "placement": table.placement,
                "ids": ids_config(table.ids),
                "optimizer": _optimizer(table, names),
            }
            for table in manifest.tables
        ],
    }


def to_json(manifest: Manifest) -> str:
    """The text of `model.json`."""
    return json.dumps(model_config(manifest), indent=1, ensure_ascii=False) + "\n"


def read_model(directory: str) -> Dict[str, Any]:
    """The model config in `directory`; BadInput where there is none."""
    path = os.path.join(os.fspath(directory), FILE)
    try:
        with open(path, encoding="utf-8") as file:
            config = json.load(file)
    except (OSError, ValueError, RecursionError) as error:
        raise BadInput(
            f"{path} cannot be read ({error}); give a directory that `semisync convert` wrote"
        ) from error
    if not isinstance(config, dict) or config.get("schema") != SCHEMA:
        raise BadInput(f"{path} is not a model config of schema {SCHEMA}")
    return config


def contradicts(config: Dict[str, Any], manifest: Manifest) -> bool:
    """Whether `config` has a table that the data has otherwise; the rest is free to be edited."""
    tables = config.get("tables")
    if not isinstance(tables, list):
        return True
    known = [_of_data(one) for one in model_config(manifest)["tables"]]
    return not all(isinstance(one, dict) and _of_data(one) in known for one in tables)


def _of_data(table: Dict[str, Any]) -> List[Any]:
    """What a config says of a table that follows from the data."""
    ids = table.get("ids")
    of_ids = [ids.get("mode"), ids.get("buckets")] if isinstance(ids, dict) else ids
    return [*(table.get(key) for key in _OF_DATA), of_ids]


def ids_config(ids: Optional[Ids]) -> Optional[Dict[str, Any]]:
    """What the config says of a table's raw ids."""
    if ids is None:
        return None
    found: Dict[str, Any] = {"mode": ids.mode}
    if ids.mode == "mch":
        found["eviction_interval"] = None
    if ids.mode == "mpzch":
        found.update(buckets=ids.buckets, max_probe=max(ids.max_probe, _MAX_PROBE))
    return found


def _optimizer(table: TableSummary, names: Set[str]) -> Optional[Dict[str, Any]]:
    """None for a table without slots: plain SGD has none, nor has a table that is not trained."""
    if table.optimizer is None:
        return None
    found: Dict[str, Any] = {"tensorflow": table.optimizer, "class": None}
    values = table.hyperparameters
    other = values.get("learning_rate_power", -0.5) != -0.5 or "sparse_rmsprop" in values
    nadam = table.optimizer in ADAMS and "nesterov" in values
    if table.optimizer not in _KEPT or other or nadam:
        return {**found, "arguments": dict(values), "fused": False}
    class_, takes, always, fused = _KEPT[table.optimizer]
    arguments: Dict[str, Any] = dict(always)
    for name in takes:
        if name in values:
            value: Any = bool(values[name]) if name in _FLAGS else values[name]
            arguments[_ARGUMENTS.get(name, name)] = value
    if f"optim.state.{table.fqn}.grad_avg" in names:
        arguments["centered"] = True
    if table.row_wise:
        class_ = "torchrec.optim.RowWiseAdagrad"
    return {**found, "class": class_, "arguments": arguments, "fused": fused}
