"""The parts of a migration, each made once and found again: see `results`.

A part is a function of the settings; its inputs are listed beside it. Its `Part` says what
became of it, in a sentence.
"""

import json
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence

from semisync.common.errors import SemisyncError, UsageError
from semisync.common.files import write_text
from semisync.common.progress import Progress
from semisync.common.terminal import shown
from semisync.migration import scores
from semisync.migration.conversion import (
    Prepared,
    convert,
    edited,
    model_inputs,
    source_hash,
)
from semisync.migration.look import look
from semisync.migration.results import Results
from semisync.migration.settings import ROWS, STEP_ROWS, Settings
from semisync.migration.verdict import Part, State

VERIFIED = "verified.json"  # the record of the values' verification

COMPARED = {
    "values": "the values, with the checkpoint's",
    "forward": "the outputs of model.py, with TensorFlow's",
    "training": "the training steps, with TensorFlow's",
    "tensorflow": "the scores of the data by TensorFlow",
    "torch": "the scores of the data by model.py",
    "rows": "the score of every row, with TensorFlow's",
    "auc": "the AUC, to within the margin",
}


class Identities(NamedTuple):
    """SHA-256 of checkpoint with graph, data, model.py with weights, and semisync's version."""

    checkpoint: str
    data: List[str]
    converted: str
    version: str


class Parts:
    """Makes the parts, in order.

    Args:
        settings: of the migration.
        results: where they are kept.
        progress: shows the part at work, and its result.
    """

    def __init__(self, settings: Settings, results: Results, progress: Progress) -> None:
        self._settings, self._results, self._progress = settings, results, progress

    def look(self, identities: Identities) -> Optional[Prepared]:
        """The preparations of a first look; None if they have been taken before.

        Raises:
            SemisyncError: the findings, see `look`.
        """
        settings = self._settings
        taken = model_inputs(settings) if self._edited() else None
        made_from = [*self._of_rows(identities._replace(converted="")), settings.key]
        made_from += [settings.converts(), settings.sigmoid, settings.steps > 0]
        kept = self._results.find("look", made_from)
        if kept is not None and (taken is None or kept["inputs"] == repr(taken)):
            return None
        self._progress.show("looking at the graph and the data")
        looked = look(settings, taken, self._looked_at)
        self._results.keep("look", made_from, {"rows": looked.rows, "inputs": looked.inputs})
        self._progress.end("looked at: the graph, the checkpoint and {:,} rows".format(looked.rows))
        return looked.prepared

    def convert(
        self, identities: Identities, prepared: Optional[Prepared] = None
    ) -> Dict[str, Any]:
        """The carried tensors. Raises: SemisyncError, where there is nothing to go on with.

        Args:
            prepared: from `look`.
        """
        settings = self._settings
        made_from = [identities.checkpoint, identities.version, settings.converts()]
        found = self._results.find("convert", made_from)
        if found is not None and source_hash(settings) is not None:
            self._progress.end("converted before: {}".format(settings.converted))
            return found
        if self._edited():
            raise UsageError(
                "{}/model.py was edited, and is of another checkpoint or output than this one; "
                "name a new folder with --out, or move it away".format(settings.converted)
            )
        self._progress.show("converting {}".format(settings.checkpoint))
        began = self._results.begin("convert", made_from)
        found = convert(settings, began, self._bytes, prepared)
        self._results.keep("convert", made_from, found)
        self._progress.end("converted: {}".format(settings.converted))
        return found

    def values(self, identities: Identities) -> Part:
        """Both sides read again."""
        made_from = [identities.checkpoint, identities.converted, identities.version]

        def work() -> Dict[str, Any]:
            from migrate.verification import verify

            settings = self._settings
            compared = verify(settings.checkpoint, settings.converted, assets=settings.assets)
            found = compared.to_json()
            write_text(self._settings.file(VERIFIED), json.dumps(found, indent=1) + "\n")
            return found

        return self._part("values", made_from, work, _values_found)

    def forward(self, identities: Identities) -> Part:
        """The same rows through both sides."""
        settings = self._settings

        def work() -> Dict[str, Any]:
            from migrate.behaviour.forward import compare_forward
            from migrate.behaviour.text import forward_lines
            from migrate.runtime.source import read_source

            named = scores.for_module(settings, read_source(settings.converted).INPUTS)
            how = scores.setting(settings, named)
            found = compare_forward(
                settings.checkpoint, settings.converted, settings.data, how, rows=ROWS, onnx=False
            )
            return {"report": found.to_json(), "text": "\n".join(map(shown, forward_lines(found)))}

        return self._part("forward", self._of_rows(identities), work, _compared)

    def training(self, identities: Identities) -> Part:
        """The same steps on both sides."""
        settings = self._settings
        if not settings.steps:
            finding = "left out, as --steps is 0"
            return Part("training", COMPARED["training"], State.LEFT_OUT, finding, {})

        def work() -> Dict[str, Any]:
            from migrate.behaviour.text import training_lines
            from migrate.behaviour.training import compare_training

            how, size = scores.setting(settings), settings.batch_size or STEP_ROWS
            found = compare_training(
                settings.checkpoint,
                settings.converted,
                settings.data,
                how._replace(reading=how.reading._replace(size=size)),
                settings.steps,
            )
            return {"report": found.to_json(), "text": "\n".join(map(shown, training_lines(found)))}

        made_from = [*self._of_rows(identities), settings.steps, STEP_ROWS]
        return self._part("training", made_from, work, _compared)

    def scored(self, identities: Identities, side: str, sigmoid: bool) -> Part:
        """The scores of one side, in its file."""
        settings = self._settings
        made_from = self._of_scores(identities, sigmoid)

        def work() -> Dict[str, Any]:
            return scores.score(settings, side, sigmoid, self._rows)

        return self._part(side.partition(".")[0], made_from, work, _scored)

    def rows(self, identities: Identities, sigmoid: bool, scored: Sequence[Part]) -> Part:
        """The scores of both sides, row by row."""
        settings = self._settings
        missing = [part.name for part in scored if part.state is State.NOT_RUN]
        if missing:
            finding = "there are no scores of {}".format(" and ".join(missing))
            return Part("rows", COMPARED["rows"], State.NOT_RUN, finding, {})

        def work() -> Dict[str, Any]:
            return scores.every_row(settings, sigmoid)

        part = self._part("rows", self._of_scores(identities, sigmoid), work, _compared)
        theirs = scored[0]
        if part.state is State.FAILED and theirs.state is State.OPEN:
            return part._replace(state=State.OPEN)  # TensorFlow's own differ from run to run
        return part

    def _of_scores(self, identities: Identities, sigmoid: bool) -> List[Any]:
        """The identity of a side's scores."""
        settings = self._settings
        made_from = [*self._of_rows(identities), settings.key, settings.label, settings.column]
        return [*made_from, sigmoid]

    def _of_rows(self, identities: Identities) -> List[Any]:
        """The identity of a part that takes rows through both sides."""
        settings = self._settings
        return [list(identities), settings.label, *settings.reads(), *settings.tensorflow()]

    def _part(
        self,
        name: str,
        made_from: Any,
        work: Callable[[], Dict[str, Any]],
        judged: Callable[[Dict[str, Any]], Any],
    ) -> Part:
        """A part that was kept, or is made now; a part that cannot run gives its reason."""
        compared = COMPARED[name]
        found = self._results.find(name, made_from)
        if found is None:
            self._progress.show("{} ...".format(name))
            try:
                found = work()
            except SemisyncError as error:
                self._progress.end("{}: not run: {}".format(name, error))
                return Part(name, compared, State.NOT_RUN, str(error), {})
            self._results.keep(name, made_from, found)
        state, finding = judged(found)
        self._progress.end("{}: {}: {}".format(name, state.value, finding.splitlines()[-1]))
        return Part(name, compared, state, finding, found)

    def _edited(self) -> bool:
        return edited(self._settings, self._results.last("convert"))

    def _looked_at(self, rows: int, file: str) -> None:
        if self._progress.live:
            self._progress.show("{:,} rows looked at, {}".format(rows, file))

    def _bytes(self, done: int, total: int) -> None:
        text = "converting: {:,.0f} of {:,.0f} MB".format(done / 1e6, total / 1e6)
        if self._progress.live:
            self._progress.show(text)

    def _rows(self, rows: int, file: str) -> None:
        if self._progress.live:
            self._progress.show("{:,} rows scored, {}".format(rows, file))


def _values_found(found: Dict[str, Any]) -> Any:
    if found["verified"]:
        finding = "all {:,} rows of {} tensors agree in every bit".format(
            found["rows"], found["tensors"]
        )
        if found["hashes"]:
            finding += ", and {} SHA-256 agree".format(found["hashes"])
        if found["unchecked"]:
            finding += "; not checked: {}".format("; ".join(found["unchecked"]))
        return State.PASSED, finding
    return State.FAILED, "\n".join(found["differences"])


def _compared(found: Dict[str, Any]) -> Any:
    return State.PASSED if found["report"]["equal"] else State.FAILED, found["text"]


def _scored(found: Dict[str, Any]) -> Any:
    finding = "{:,} rows, {:,} of them positive: {}".format(
        found["rows"], found["positives"], found["file"]
    )
    if found["unstable"] is None:
        return State.PASSED, finding
    return State.OPEN, finding + "; " + found["unstable"]
