"""The scores of both sides, and the difference of their AUC."""

import contextlib
import os
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

import numpy as np

from semisync.common.tensor_names import of_edge
from semisync.common.terminal import shown
from semisync.migration.settings import ROWS_AT_A_TIME, Settings

BASELINE, CANDIDATE = "tensorflow.parquet", "torch.parquet"


def for_module(settings: Settings, inputs: Any) -> List[Tuple[str, str, bool]]:
    """`settings.named` without columns that the module does not take, such as labels."""
    from migrate.scoring.module_inputs import input_called

    return [one for one in settings.named if input_called(one[1], inputs) is not None]


def module_inputs(settings: Settings, wanted: Any) -> Any:
    """The inputs of model.py from each row; it takes `wanted`."""
    from migrate.behaviour.subject import told_feeds
    from migrate.scoring.module_inputs import ModuleInputs

    constants = told_feeds(setting(settings), wanted)
    path = settings.converted + "/model.py"
    return ModuleInputs(path, wanted, for_module(settings, wanted), constants)


def setting(settings: Settings, named: Any = None) -> Any:
    """How both sides are run, for `migrate.behaviour`."""
    from migrate.behaviour.setting import Setting

    return Setting(
        meta=settings.meta,
        named=settings.named if named is None else named,
        feeds=settings.feeds,
        reading=_reading(settings, ()),
        python=settings.python,
        modules=settings.modules,
        timeout=settings.timeout,
        assets=settings.assets,
    )


def score(
    settings: Settings, side: str, sigmoid: bool, progress: Callable[[int, str], None]
) -> Dict[str, Any]:
    """Scores all rows of the data with one side, BASELINE or CANDIDATE, into its file.

    Args:
        sigmoid: the output is a logit.

    Raises:
        BadInput, UsageError: the rows cannot be scored.
    """
    from migrate.scoring.run import Writing, score

    open_model = {BASELINE: _tensorflow, CANDIDATE: _torch}[side]
    with contextlib.closing(open_model(settings)) as model:
        lists = [taken.column for taken in model.inputs if taken.several]
        reading = _reading(settings, lists)
        writing = Writing(settings.key, settings.label, (), settings.column, sigmoid)
        scored = score(model, settings.data, settings.file(side), reading, writing, progress)
        versions = model.origin()["versions"]
    instability = scored.instability
    return {
        "file": side,
        "rows": scored.rows,
        "positives": scored.positives,
        "unstable": None if instability is None else instability.in_words(),
        "versions": versions,
    }


def _reading(settings: Settings, lists: Sequence[str]) -> Any:
    from migrate.scoring.run import Reading

    size = settings.batch_size or ROWS_AT_A_TIME
    return Reading(settings.types, settings.fills, lists, settings.text, size)


def every_row(settings: Settings, sigmoid: bool) -> Dict[str, Any]:
    """The scores of both files, row by row.

    Args:
        sigmoid: as the scores were written.
    """
    from migrate.behaviour.every_row import ScoreFiles, compare_scores
    from migrate.behaviour.text import apart_text, scores_lines
    from migrate.runtime.source import read_source
    from migrate.scoring.output import LOGIT, ROW, SCORE

    files = ScoreFiles(
        settings.file(BASELINE),
        settings.file(CANDIDATE),
        settings.key or ROW,
        LOGIT if sigmoid else SCORE,
        settings.column,
    )
    how = setting(settings, for_module(settings, read_source(settings.converted).INPUTS))
    checkpoint, converted = settings.checkpoint, settings.converted
    found = compare_scores(checkpoint, converted, settings.data, files, how)
    text, apart = "\n".join(map(shown, scores_lines(found))), apart_text(found)
    if settings.column is not None:  # the others are in no file of scores
        apart += ", in column {} of the output".format(settings.column)
    return {"report": found.to_json(), "text": text, "apart": apart}


def compare(settings: Settings, sigmoid: bool, verified: Any) -> Tuple[Any, Dict[str, Any]]:
    """The comparison of both files, and its basis.

    Args:
        sigmoid: as the scores were written.
        verified: the record of the values' verification, or None.
    """
    import parity
    from migrate.scoring.output import LOGIT, ROW, SCORE
    from parity.io.logits import ROLES
    from parity.io.readers import ColumnNames, read_two

    column = LOGIT if sigmoid else SCORE
    names = ColumnNames(
        label=settings.label,
        baseline_score=column,
        candidate_score=column,
        key=settings.key or ROW,
        logits=ROLES if sigmoid else (),
    )
    sample = read_two(settings.file(BASELINE), settings.file(CANDIDATE), names)
    comparison = parity.compare(
        sample.labels, sample.baseline, sample.candidate, margin=settings.margin, verified=verified
    )
    return comparison, sample.provenance()


def _torch(settings: Settings) -> Any:
    from migrate.behaviour.subject import open_subject, told_feeds
    from migrate.behaviour.tables_by_id import begin_with_zeros, zeros_fed
    from migrate.open import open_model
    from migrate.runtime.source import read_source
    from migrate.scoring import model_files
    from migrate.scoring.in_converted import ConvertedModel

    wanted = read_source(settings.converted).INPUTS
    constants, named = told_feeds(setting(settings), wanted), for_module(settings, wanted)
    origin = model_files.of_conversion(settings.converted)
    model = ConvertedModel(settings.converted, named, constants, settings.output, origin)
    with open_model(settings.checkpoint) as checkpoint:
        subject = open_subject(checkpoint, settings.converted, setting(settings), wanted)
        begin_with_zeros(zeros_fed(subject), model.module)
    return model


def _tensorflow(settings: Settings) -> Any:
    """The graph in TensorFlow, fed model.py's inputs, not training, without dropout."""
    from migrate.behaviour.in_tensorflow import TensorFlowGraph
    from migrate.behaviour.serving import as_it_serves
    from migrate.behaviour.subject import open_subject
    from migrate.model.outputs import find_outputs
    from migrate.open import open_model
    from migrate.runtime.source import read_source

    source, how = read_source(settings.converted), setting(settings)
    wanted = source.INPUTS
    given = module_inputs(settings, wanted)
    with open_model(settings.checkpoint) as checkpoint:
        subject = open_subject(checkpoint, settings.converted, how, wanted)
        outputs = find_outputs(subject.found.graph, list(source.OUTPUTS))
        written = subject.write(outputs)
        serving = as_it_serves(subject, written, how, wanted, outputs.values())
        inputs = [(one, wanted[one.name].tensors) for one in given.inputs]
        (tensor,) = map(of_edge, outputs.values())
        graph = TensorFlowGraph(
            how,
            checkpoint,
            subject.raw,
            inputs,
            serving.feeds,
            [tensor],
            fused=serving.fused,
        )
        batch = written.freed.size or given.batch
        return _OneTensor(graph, tensor, given.inputs, batch, _origin(settings, subject.raw.path))


def _origin(settings: Settings, meta: str) -> Dict[str, Any]:
    from migrate.scoring import model_files

    if os.path.basename(meta) == "saved_model.pb":
        return model_files.of_saved_model(os.path.dirname(meta))
    return model_files.of_checkpoint(settings.checkpoint, meta)


class _OneTensor:
    """A tensor of a graph as a model that scores; see `migrate.scoring.model.Model`."""

    def __init__(
        self, graph: Any, tensor: str, inputs: Any, batch: Optional[int], origin: Dict[str, Any]
    ) -> None:
        self._graph, self._origin = graph, origin
        self.inputs, self.batch, self.output = inputs, batch, tensor

    def score(self, rows: int, features: List[Any]) -> Any:
        """The output for a batch."""
        (found,) = self._graph.fetch(rows, features, [self.output])
        return found if found.dtype == np.float64 else found.astype(np.float32)

    def origin(self) -> Dict[str, Any]:
        """The origin of its scores, for the file that holds them."""
        return {**self._origin, **self._graph.origin()}

    def close(self) -> None:
        """Ends TensorFlow."""
        self._graph.close()
