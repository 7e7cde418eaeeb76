"""`migrate.read_facts`: the known facts of a model's training, by its path:

a TensorFlow checkpoint     its prefix, with PREFIX.meta where that is there
a converted directory       the output of `semisync convert`, and model.json as it was edited
a file of settings          .yaml, .yml or .json, written by hand; it may name one of the
                            others, and its own words replace that record's
"""

import dataclasses

from migrate.facts.checkpoint import read_checkpoint
from migrate.facts.converted import read_converted
from migrate.facts.settings_file import SUFFIXES, read_settings_file
from migrate.manifest.manifest import is_converted, read_manifest
from migrate.open import open_checkpoint
from migrate.optimizers.registry import OPTIMIZERS
from parity.diagnosis.facts import Facts


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
    model = read_settings_file(path)[1] if path.lower().endswith(SUFFIXES) else path
    if model is None:
        return
    if is_converted(model):
        read_manifest(model)
    else:
        open_checkpoint(model).close()


def _facts(path: str) -> Facts:
    if not path.lower().endswith(SUFFIXES):
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
