"""A file of settings that the user writes, where no checkpoint tells them.

    optimizer: {name: Adagrad, learning_rate: 0.05, epsilon: 1.0e-8, initial_accumulator_value: 0}
    batch_norm: {epsilon: 0.001, momentum: 0.99}
    combiner: mean                      # or {user: mean, item: sum}, by table
    model: model.ckpt-40000             # a checkpoint or converted directory, for all the rest

Every part may be left out. As JSON or YAML; a path is relative to the file.
"""

import dataclasses
import json
import math
import os
from typing import Any, Dict, Optional, Tuple

from parity.diagnosis.facts import COMBINERS, SUFFIXES, Facts, check_source, known_facts
from semisync.common.errors import BadInput, MissingExtra

_PARTS = ("optimizer", "batch_norm", "combiner", "model")


def read_settings(path: str) -> Facts:
    """The facts in a file of settings; BadInput names what is wrong in it."""
    settings, model = _parsed(path)
    if model is None:
        return settings
    facts = known_facts(model)
    return dataclasses.replace(
        facts,
        source=f"{path}, {facts.source}",
        optimizer=settings.optimizer or facts.optimizer,
        settings={**facts.settings, **settings.settings},
        batch_norm={**facts.batch_norm, **settings.batch_norm},
        combiners={**facts.combiners, **settings.combiners},
    )


def check_settings(path: str) -> None:
    """Raises as `read_settings`, without reading the data of the model that the file names."""
    model = _parsed(path)[1]
    if model is not None:
        check_source(model)


def _parsed(path: str) -> Tuple[Facts, Optional[str]]:
    """The file's own facts, and the path of the model that it names."""
    data = _load(path)
    unknown = sorted(map(str, set(data) - set(_PARTS)))
    if unknown:
        raise BadInput(f"{path}: unknown part {unknown[0]!r}, known are {', '.join(_PARTS)}")
    optimizer = _mapping(path, data, "optimizer")
    name = optimizer.pop("name", None)
    if name is not None and not isinstance(name, str):
        raise BadInput(f"{path}: the optimizer's name is {name!r}; a word such as Adagrad is due")
    model = data.get("model")
    if model is not None and (not isinstance(model, str) or model.lower().endswith(SUFFIXES)):
        raise BadInput(
            f"{path}: model is {model!r}; a checkpoint or converted directory is expected"
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
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"{path} cannot be read: {error}") from error
    try:
        data = json.loads(text) if path.lower().endswith(".json") else _yaml(path, text)
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{path} is not JSON: {error}") from error
    if not isinstance(data, dict):
        raise BadInput(f"{path} has no settings; it may have the parts {', '.join(_PARTS)}")
    return data


def _yaml(path: str, text: str) -> Any:
    try:
        import yaml
    except ModuleNotFoundError as error:
        raise MissingExtra(
            f"reading {path} needs pyyaml: install semisync[torch], or write it as .json"
        ) from error
    try:
        return yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise BadInput(f"{path} is not YAML: {' '.join(str(error).split())}") from error


def _mapping(path: str, data: Dict[str, Any], part: str) -> Dict[str, Any]:
    found = data.get(part, {})
    if not isinstance(found, dict):
        raise BadInput(f"{path}: {part} is {found!r}; names with their values are expected")
    return dict(found)


def _numbers(path: str, part: str, found: Dict[str, Any]) -> Dict[str, float]:
    numbers = {}
    for name, value in found.items():
        try:  # YAML takes 1e-8 for a word: its numbers have a point
            numbers[str(name)] = float(value)
        except (TypeError, ValueError):
            numbers[str(name)] = math.nan
        if not math.isfinite(numbers[str(name)]):
            raise BadInput(f"{path}: {part}: {name} is {value!r}, not a finite number")
    return numbers


def _combiners(path: str, data: Dict[str, Any]) -> Dict[str, str]:
    found = data.get("combiner", {})
    by_table = found if isinstance(found, dict) else {"": found}
    for table, combiner in by_table.items():
        if combiner not in COMBINERS:
            raise BadInput(
                f"{path}: combiner {combiner!r}{f' of {table}' if table else ''}; expected one of "
                f"{', '.join(COMBINERS)}"
            )
    return {str(table): combiner for table, combiner in by_table.items()}
