"""A file of settings that the user writes by hand, where no checkpoint has them:

    optimizer: {name: Adagrad, learning_rate: 0.05, epsilon: 1.0e-8, initial_accumulator_value: 0}
    batch_norm: {epsilon: 0.001, momentum: 0.99}
    combiner: mean                      # or {user: mean, item: sum}, by table
    model: model.ckpt-40000             # a checkpoint or converted directory, for all the rest

Every part may be left out. It is JSON or YAML; a path is relative to the file.
"""

import math
import os
from typing import Any, Dict, Optional, Tuple

from migrate.planning import yaml_text
from parity.diagnosis.facts import COMBINERS, Facts
from semisync.common import json_text
from semisync.common.errors import BadInput
from semisync.common.files import read_text
from semisync.storage.within import reachable

SUFFIXES = (".yaml", ".yml", ".json")
_PARTS = ("optimizer", "batch_norm", "combiner", "model")


def read_settings_file(path: str) -> Tuple[Facts, Optional[str]]:
    """The file's own facts, and the path of the model that it names.

    Raises:
        BadInput: something in it is wrong.
        MissingExtra: YAML without pyyaml.
    """
    data = _load(path)
    unknown = sorted(map(str, set(data) - set(_PARTS)))
    if unknown:
        raise BadInput(f"{path}: unknown part {unknown[0]!r}, known are {', '.join(_PARTS)}")
    optimizer = _mapping(path, data, "optimizer")
    name = optimizer.pop("name", None)
    if name is not None and not isinstance(name, str):
        raise BadInput(
            f"{path}: the optimizer's name is {name!r}; a word such as Adagrad is expected"
        )
    model = data.get("model")
    if model is not None and (not isinstance(model, str) or model.lower().endswith(SUFFIXES)):
        raise BadInput(
            f"{path}: model is {model!r}; a checkpoint or converted directory is expected"
        )
    if model is not None and not reachable(model, path):
        raise BadInput(
            f"{path}: model is {model}, and no server is asked that you did not name; copy what is "
            "there, or give its URL in place of this file"
        )
    facts = Facts(
        path,
        optimizer=name,
        settings=_numbers(path, "optimizer", optimizer),
        batch_norm=_numbers(path, "batch_norm", _mapping(path, data, "batch_norm")),
        combiners=_combiners(path, data),
    )
    return facts, None if model is None else os.path.join(os.path.dirname(path), model)


def _load(path: str) -> Dict[str, Any]:
    text = read_text(path)
    try:
        data = (
            json_text.loads(text) if path.lower().endswith(".json") else yaml_text.load(text, path)
        )
    except ValueError as error:
        raise BadInput(f"{path} is not JSON: {error}") from error
    if not isinstance(data, dict):
        raise BadInput(f"{path} has no settings; it may have the parts {', '.join(_PARTS)}")
    return data


def _mapping(path: str, data: Dict[str, Any], part: str) -> Dict[str, Any]:
    values = data.get(part, {})
    if not isinstance(values, dict):
        raise BadInput(f"{path}: {part} is {values!r}; names with their values are expected")
    return dict(values)


def _numbers(path: str, part: str, values: Dict[str, Any]) -> Dict[str, float]:
    numbers = {}
    for name, value in values.items():
        try:  # YAML takes 1e-8 for a word: its numbers have a point
            numbers[str(name)] = float(value)
        except (TypeError, ValueError):
            numbers[str(name)] = math.nan
        if not math.isfinite(numbers[str(name)]):
            raise BadInput(f"{path}: {part}: {name} is {value!r}, not a finite number")
    return numbers


def _combiners(path: str, data: Dict[str, Any]) -> Dict[str, str]:
    given = data.get("combiner", {})
    by_table = given if isinstance(given, dict) else {"": given}
    for table, combiner in by_table.items():
        if combiner not in COMBINERS:
            raise BadInput(
                f"{path}: combiner {combiner!r}{f' of {table}' if table else ''}; expected one of "
                f"{', '.join(COMBINERS)}"
            )
    return {str(table): combiner for table, combiner in by_table.items()}
