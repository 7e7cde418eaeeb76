"""`migrate.read_facts`: the known facts of a model's training, by its path:

a TensorFlow checkpoint     its prefix, with PREFIX.meta where that is there
a converted directory       the output of `semisync convert`, and model.json as it was edited
a file of settings          .yaml, .yml or .json, written by hand; it may name one of the
                            others, and its own words replace that record's:

    optimizer: {name: Adagrad, learning_rate: 0.05, epsilon: 1.0e-8, initial_accumulator_value: 0}
    batch_norm: {epsilon: 0.001, momentum: 0.99}
    combiner: mean                      # or {user: mean, item: sum}, by table
    model: model.ckpt-40000             # a checkpoint or converted directory, for all the rest

Every part may be left out. It is JSON or YAML; a path is relative to the file.
"""

import dataclasses
import math
import os
from typing import Any, Dict, Optional, Tuple

from migrate.facts.checkpoint import read_checkpoint
from migrate.facts.converted import read_converted
from migrate.manifest.manifest import is_converted, read_manifest
from migrate.open import open_checkpoint
from migrate.optimizers.registry import OPTIMIZERS
from migrate.planning import yaml_text
from parity.diagnosis.facts import COMBINERS, Facts
from semisync.common import json_text
from semisync.common.errors import BadInput
from semisync.common.files import read_text
from semisync.storage.within import reachable

_SUFFIXES = (".yaml", ".yml", ".json")
_PARTS = ("optimizer", "batch_norm", "combiner", "model")


def read_facts(path: str) -> Facts:
    """Reads the facts of one side, for `parity.diagnose`.

    Args:
        path: a checkpoint's prefix, a converted directory, or a file of settings (JSON or YAML). Of
            the first two all data is read, in a stream.

    Returns:
        `parity.Facts`.

    Raises:
        BadInput: it is none of the three, or damaged.
        MissingExtra: reading it needs a missing package.

    Examples:
        >>> facts = migrate.read_facts("model.ckpt-40000")
        >>> facts.optimizer, facts.step, facts.settings["initial_accumulator_value"]
        ('Adagrad', 40000, 0.1)
    """
    facts = _facts(path)
    record = OPTIMIZERS.get(facts.optimizer or "")
    under_root = record is not None and record.epsilon_under_root
    return dataclasses.replace(facts, epsilon_under_root=under_root)


def check_source(path: str) -> None:
    """Raises as `read_facts` where that is certain to fail, without reading a model's data."""
    model = read_settings_file(path)[1] if path.lower().endswith(_SUFFIXES) else path
    if model is None:
        return
    if is_converted(model):
        read_manifest(model)
    else:
        open_checkpoint(model).close()


def _facts(path: str) -> Facts:
    if not path.lower().endswith(_SUFFIXES):
        return _facts_of_model(path)
    settings, model = read_settings_file(path)
    if model is None:
        return settings
    facts = _facts_of_model(model)
    return dataclasses.replace(
        facts,
        source=f"{path}, {facts.source}",
        optimizer=settings.optimizer or facts.optimizer,
        settings={**facts.settings, **settings.settings},
        batch_norm={**facts.batch_norm, **settings.batch_norm},
        combiners={**facts.combiners, **settings.combiners},
    )


def _facts_of_model(path: str) -> Facts:
    return read_converted(path) if is_converted(path) else read_checkpoint(path)


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
    if model is not None and (not isinstance(model, str) or model.lower().endswith(_SUFFIXES)):
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
