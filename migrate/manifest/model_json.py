"""`model.json` beside a converted checkpoint: the parameters of the modules that it fills.

    {"schema": "semisync.model/1", "module": "ebc", "tables": [
      {"name": "user", "rows": 31, "dim": 8, "dtype": "float32",
       "features": ["user"], "pooling": "sum", "weighted": false,
       "static": null, "placement": null, "ids": null,
       "optimizer": {"tensorflow": "Adagrad", "class": "torch.optim.Adagrad",
                     "arguments": {"lr": 0.1, "eps": 0.0}, "fused": true}}]}

It is data that any program can read and anyone may edit; `migrate.torchrec.build` builds from it.
`read_model` and `checked_model` refuse missing keys, unknown ones, and other types.
"""

from __future__ import annotations

import json
import os
from typing import Any, Dict, List, Mapping, Optional, Set, TypedDict

from migrate.manifest.manifest import Ids, Manifest, TableSummary
from migrate.manifest.typed import build
from migrate.optimizers.registry import OPTIMIZERS
from semisync.common import json_text
from semisync.common.errors import BadInput
from semisync.storage.files import read_whole
from semisync.storage.remote import Unreachable

SCHEMA = "semisync.model/1"
FILE = "model.json"

_MAX_PROBE = 128  # which HashZchManagedCollisionModule has by default
_KEYS_OF_MODE = {"mch": ("eviction_interval",), "mpzch": ("buckets", "max_probe")}


# The table's optimizer in TensorFlow, and its counterpart in torch.
# class      a torch optimizer, None where none computes the same
# arguments  of the class; lr is left out where the MetaGraph does not have it as a constant
# fused      whether TorchRec's fused kernels compute the same, given to apply_optimizer_in_backward
OptimizerConfig = TypedDict(
    "OptimizerConfig",
    {"tensorflow": str, "class": Optional[str], "arguments": Dict[str, Any], "fused": bool},
)


class _Mode(TypedDict):
    mode: str


class IdsConfig(_Mode, total=False):
    """How raw ids find their rows.

    mode               one of migrate.manifest.id_modes.MODES
    eviction_interval  mch: batches after which new ids are taken in, None for never
    buckets, max_probe mpzch: as HashZchManagedCollisionModule takes them
    """

    eviction_interval: Optional[int]
    buckets: int
    max_probe: int


class _Table(TypedDict):
    name: str
    rows: int
    dim: int
    dtype: str
    features: List[str]
    pooling: Optional[str]
    optimizer: Optional[OptimizerConfig]


class TableConfig(_Table, total=False):
    """A table; files of earlier versions lack the keys that may be absent.

    pooling    None where the plan does not say it; weighted: whether each id has a weight
    static     None, or the type of a table that is no longer trained: dtype is that type ("int8"
               for the rows of migrate.manifest.quantization), optimizer is None
    placement  "device", "uvm" or "cpu", see migrate.torchrec.placement; None: as the planner
               chooses
    ids        None where an id is the number of its row
    """

    weighted: bool
    static: Optional[str]
    placement: Optional[str]
    ids: Optional[IdsConfig]


class _Tables(TypedDict):
    tables: List[TableConfig]


class ModelConfig(_Tables, total=False):
    """module: path of the EmbeddingBagCollection in the model."""

    schema: str
    module: str


def model_config(manifest: Manifest) -> ModelConfig:
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


def read_model(directory: str) -> ModelConfig:
    """The model config of a converted checkpoint, `model.json`.

    Args:
        directory: that `convert` wrote.

    Returns:
        A mapping that `build` takes, edited or not.

    Raises:
        BadInput: there is no config, or a key of it is missing, unknown or of the wrong type.

    Examples:
        >>> from migrate.torchrec import read_model
        >>> tables = read_model("converted")["tables"]
        >>> [(table["name"], table["rows"]) for table in tables]
        [('cities', 50), ('products', 100)]
    """
    path = os.path.join(os.fspath(directory), FILE)
    try:
        config = json_text.loads(read_whole(path))
    except Unreachable:
        raise
    except (BadInput, ValueError) as error:
        raise BadInput(
            f"{path} cannot be read ({error}); give a directory that `semisync convert` wrote"
        ) from error
    if not isinstance(config, dict) or config.get("schema") != SCHEMA:
        raise BadInput(f"{path} is not a model config of schema {SCHEMA}")
    return checked_model(config, path)


def checked_model(config: Mapping[str, Any], where: str = "the model config") -> ModelConfig:
    """Checks the keys and value types of a model config.

    Raises:
        BadInput: one is wrong; the message begins with `where` and names the key.
    """
    model = build(ModelConfig, dict(config), where)
    for index, table in enumerate(model["tables"]):
        at = f"{where}: tables[{index}]"
        if min(table["rows"], table["dim"]) < 0:
            raise BadInput(f"{at}: {table['rows']} x {table['dim']}, expected at least 0")
        ids = table.get("ids")
        if ids is not None:
            _check_ids(ids, table["rows"], f"{at}: ids")
    return model


def _check_ids(ids: IdsConfig, rows: int, where: str) -> None:
    for key in _KEYS_OF_MODE.get(ids["mode"], ()):
        if key not in ids:
            raise BadInput(f"{where}: a table by ids {ids['mode']} lacks {key}")
    for key, count in ids.items():
        if isinstance(count, int) and count < 1:
            raise BadInput(f"{where}: {key}: expected at least 1, found {count}")
    if rows % ids.get("buckets", 1):
        raise BadInput(f"{where}: the {rows} rows do not divide into {ids['buckets']} buckets")


def contradicts(config: ModelConfig, manifest: Manifest) -> bool:
    """Whether a table of `config` disagrees with the data; all else may be edited."""
    known = [_of_data(table) for table in model_config(manifest)["tables"]]
    return not all(_of_data(table) in known for table in config["tables"])


def _of_data(table: TableConfig) -> List[Any]:
    """The config's entries of a table that follow from the data."""
    ids = table.get("ids")
    of_ids = [ids["mode"], ids.get("buckets")] if ids else None
    shape = [table["name"], table["rows"], table["dim"], table["dtype"]]
    return [*shape, table.get("static"), of_ids]


def ids_config(ids: Optional[Ids]) -> Optional[IdsConfig]:
    """The config's entries on a table's raw ids."""
    if ids is None:
        return None
    config: IdsConfig = {"mode": ids.mode}
    if ids.mode == "mch":
        config["eviction_interval"] = None
    if ids.mode == "mpzch":
        config["buckets"] = ids.buckets
        # At least TorchRec's default, which the longest search may exceed.
        config["max_probe"] = max(ids.max_probe, _MAX_PROBE)
    return config


def _optimizer(table: TableSummary, names: Set[str]) -> Optional[OptimizerConfig]:
    """The entry `optimizer`; None for a table without slots, as under plain SGD, or untrained."""
    if table.optimizer is None:
        return None
    record = OPTIMIZERS.get(table.optimizer)
    values = table.hyperparameters
    counterpart = None if record is None else record.continued_by(values)
    if record is None or counterpart is None:
        class_, arguments, fused = None, dict(values), False
    else:
        state = f"optim.state.{table.fqn}."
        slots = {name[len(state) :] for name in names if name.startswith(state)}
        class_, fused = counterpart.path, counterpart.fused
        arguments = record.arguments_for(values, slots)
        if table.row_wise:
            class_ = counterpart.row_wise
    return {
        "tensorflow": table.optimizer,
        "class": class_,
        "arguments": arguments,
        "fused": fused,
    }
