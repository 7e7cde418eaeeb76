"""Where the facts about a model come from, told by its path:

    a TensorFlow checkpoint     its prefix, with PREFIX.meta where that is there
    a converted directory       what `semisync convert` wrote, and model.json as it was edited
    a file of settings          .yaml, .yml or .json, written by hand; it may name one of the
                                others, and its own words replace what that says

`migrate` is imported where one of the first two is named.
"""

import dataclasses
import os

from parity.diagnosis.facts import Facts
from parity.diagnosis.settings_file import SUFFIXES, read_settings_file


def known_facts(path: str) -> Facts:
    """Reads the facts of one side; of a checkpoint or converted directory all data, in a stream.

    Raises: BadInput for what is neither of the three or is damaged; MissingExtra where reading it
    needs what is not installed.
    """
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


def check_source(path: str) -> None:
    """Raises as `known_facts` where that is certain to fail, without reading a model's data."""
    model = read_settings_file(path)[1] if path.lower().endswith(SUFFIXES) else path
    if model is None:
        return
    if _is_converted(model):
        from migrate.manifest.model import read_manifest

        read_manifest(model)
    else:
        from migrate.open import open_checkpoint

        open_checkpoint(model).close()


def _facts_of_model(path: str) -> Facts:
    if _is_converted(path):
        from parity.diagnosis.converted import read_converted

        return read_converted(path)
    from parity.diagnosis.checkpoint import read_checkpoint

    return read_checkpoint(path)


def _is_converted(path: str) -> bool:
    """Whether `semisync convert` wrote it."""
    return os.path.isfile(os.path.join(path, "manifest.json"))
