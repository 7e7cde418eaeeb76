"""A first look at graph, checkpoint and all rows of the data, before anything is converted or run.

Findings are reported at once, each with the words to add to the command. Most are the errors that
a later part would end with, raised by the same functions; see `migrate.behaviour.look`.
"""

import importlib.util
import sys
from typing import Any, Callable, List, Mapping, NamedTuple, Optional, Sequence

from semisync.common.errors import Findings, MissingExtra
from semisync.common.extras import not_installed
from semisync.migration import scores
from semisync.migration.conversion import Prepared, prepare, refuse_unknown_inputs
from semisync.migration.settings import Settings

_PACKAGES = {  # {package: (extras, its purpose)}
    "matplotlib": ("report", "to draw the report's figures"),
    "numba": ("report,torch", "to read text and lists"),
}


class Looked(NamedTuple):
    """The findings of a look that found nothing wrong."""

    prepared: Prepared
    rows: int
    inputs: str  # of model.py


def refuse_missing_packages() -> None:
    """Raises MissingExtra, or Several, for packages that a part, or the report, would lack."""
    findings = Findings()
    for package, (extras, purpose) in _PACKAGES.items():
        if importlib.util.find_spec(package) is None:
            findings.note(MissingExtra(not_installed(package, extras, purpose)))
    findings.end()


def look(
    settings: Settings,
    taken: Optional[Mapping[str, Any]],
    progress: Callable[[int, str], None],
) -> Looked:
    """Looks at graph, checkpoint and data.

    Args:
        taken: INPUTS of the model.py that is there; None: those that the conversion will write.
        progress: called with the rows so far and the file they are from.

    Raises:
        SemisyncError: the finding; `Several` where there is more than one.
    """
    from migrate.behaviour.look.columns import look_at_columns
    from migrate.behaviour.rows import reading_of
    from migrate.model.features.table_rows import table_rows
    from migrate.open import open_model

    findings, how = Findings(), scores.setting(settings)
    inputs: List[Any] = []
    tables: Any = {}
    prepared: Optional[Prepared] = None
    wanted = taken or {}
    with open_model(settings.checkpoint) as checkpoint, findings.noting():
        prepared = prepare(settings, checkpoint)
        wanted = prepared.written.wanted if taken is None else taken
        inputs = _inputs(settings, wanted, prepared, checkpoint, findings)
        tables = table_rows(prepared.written.parameters, prepared.written.features)
    reading = reading_of(how, inputs, min(how.reading.size, _rows(prepared, inputs)))
    rows = look_at_columns(
        settings.data, inputs, settings.label, settings.key, reading, tables, findings, progress
    )
    findings.end()
    assert prepared is not None
    return Looked(prepared, rows, repr(wanted))


def _rows(prepared: Optional[Prepared], inputs: Sequence[Any]) -> int:
    """How many rows the graph takes at a time, at most."""
    fixed = None if prepared is None else prepared.written.freed.size
    shapes = [one.shape for one in inputs if one.shape and one.shape[0]]
    return fixed or min((shape[0] for shape in shapes), default=sys.maxsize)


def _inputs(
    settings: Settings,
    wanted: Mapping[str, Any],
    prepared: Prepared,
    checkpoint: Any,
    findings: Findings,
) -> List[Any]:
    """The inputs that the parts read of each row, a `migrate.scoring.model.Input` each."""
    from migrate.behaviour.look.fed import fed_to_score, fed_to_train
    from migrate.behaviour.subject import Subject
    from migrate.graph.metagraph import read_graph

    assert settings.meta is not None
    written, how = prepared.written, scores.setting(settings)
    with findings.noting():
        refuse_unknown_inputs(settings, wanted)
    subject = Subject(checkpoint, read_graph(settings.meta), prepared.found)
    outputs = prepared.outputs.values()
    found = fed_to_score(subject, written, wanted, outputs, how, findings)
    if settings.steps:
        found += fed_to_train(subject, wanted, how, findings)
    return found
