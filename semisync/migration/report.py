"""The report of a migration: report.html for people, report.json for programs.

schema      semisync.migration/1
verdict     MIGRATED, NOT_MIGRATED or INCONCLUSIVE, and its sentence
parts       name, compared, state ("passed", "failed", "undecided", "not run", "left out"),
            finding, found
carried     tables, dense, slots, scalars, parameters, dropped, not_carried (the same in words),
            notes, outputs, training
features    the inputs of model.py: name, column, dtype, shape, sparse, tensors
left        work left for the reader
next        of a model that is MIGRATED the commands that come after it: what, command
parity      the comparison of the AUC, as `semisync parity` writes it, or null
made_from   SHA-256 of the checkpoint with its graph, of the data, of the conversion
"""

import json
from typing import Any, Dict, NamedTuple, Sequence

from semisync.common.files import write_text
from semisync.migration.following import Next
from semisync.migration.page import page
from semisync.migration.run import Migration
from semisync.migration.words import left_to_do

SCHEMA = "semisync.migration/1"


class Report(NamedTuple):
    """The path of report.html, and the contents of report.json."""

    page: str
    record: Dict[str, Any]


def write(migration: Migration, after: Sequence[Next] = ()) -> Report:
    """Writes both files, the JSON last, with the commands that come after it."""
    settings, told = migration.settings, record(migration, after)
    path = settings.file("report.html")
    write_text(path, page(migration, after))
    text = json.dumps(told, indent=1, allow_nan=False, ensure_ascii=False)
    write_text(settings.file("report.json"), text + "\n")
    return Report(path, told)


def record(migration: Migration, after: Sequence[Next] = ()) -> Dict[str, Any]:
    """The report as plain data."""
    from parity.provenance import stamp

    comparison = migration.comparison
    return {
        "schema": SCHEMA,
        "verdict": migration.verdict.value,
        "sentence": migration.sentence,
        "parts": [{**part._asdict(), "state": part.state.value} for part in migration.parts],
        "carried": migration.carried,
        "features": migration.features,
        "left": left_to_do(migration),
        "next": [one._asdict() for one in after],
        "parity": None if comparison is None else comparison.to_json(),
        "settings": migration.settings._asdict(),
        "made_from": migration.identities._asdict(),
        **stamp(),
    }
