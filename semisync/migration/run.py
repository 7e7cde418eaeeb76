"""The whole way, part after part; see the package."""

import hashlib
import os
import sys
from typing import Any, Dict, List, NamedTuple, Optional, TextIO, Tuple

from semisync.common.files import check_writable
from semisync.common.progress import Progress
from semisync.common.tensor_names import in_session
from semisync.migration import scores
from semisync.migration.conversion import features
from semisync.migration.look import refuse_missing_packages
from semisync.migration.parts import COMPARED, VERIFIED, Identities, Parts
from semisync.migration.results import Results
from semisync.migration.settings import Settings
from semisync.migration.verdict import Part, State, Verdict, in_words, verdict_of


class Migration(NamedTuple):
    """The result of a migration.

    Attributes:
        settings: as requested, with the checkpoint and its graph as they were found.
        verdict, sentence: of all parts together.
        parts: in order.
        carried: the conversion's record, see `conversion.convert`.
        features: the inputs of model.py and their columns.
        comparison: of the AUC, a `parity.Comparison`; None where it could not be made.
        provenance: of the comparison.
        identities: of the checkpoint, the data and the conversion.
    """

    settings: Settings
    verdict: Verdict
    sentence: str
    parts: List[Part]
    carried: Dict[str, Any]
    features: List[Dict[str, Any]]
    comparison: Optional[Any]
    provenance: Dict[str, Any]
    identities: Identities


def migrate(settings: Settings, stream: Optional[TextIO] = None) -> Migration:
    """Runs all parts of a migration that are not done yet.

    Raises:
        SemisyncError: a faulty checkpoint, graph or data set, or another
            process is at work in the folder; no report is written then.
    """
    from migrate.targets.work_directory import locked

    settings = _found(settings)
    refuse_missing_packages()
    check_writable(settings.out)
    results = Results(settings.out)
    with locked(results.folder, settings.out):
        return _migrate(settings, results, Progress(stream or sys.stdout))


def _migrate(settings: Settings, results: Results, progress: Progress) -> Migration:
    before = _identities(settings)
    parts = Parts(settings, results, progress)
    carried = parts.convert(before, parts.look(before))
    now = before._replace(converted=_converted(settings))
    sigmoid = settings.sigmoid or carried["logit"]
    done = [parts.values(now), parts.forward(now), parts.training(now)]
    scored = [parts.scored(now, side, sigmoid) for side in (scores.BASELINE, scores.CANDIDATE)]
    done += [*scored, parts.rows(now, sigmoid, scored)]
    comparison, provenance, auc = _compare(settings, done, sigmoid)
    done.append(auc)
    verdict = verdict_of(done)
    sentence = in_words(verdict, done)
    taken = features(settings)
    return Migration(settings, verdict, sentence, done, carried, taken, comparison, provenance, now)


def _found(settings: Settings) -> Settings:
    """The settings with the checkpoint's prefix, its graph's path, and the labels of its loss."""
    from migrate.graph.find import graph_file
    from migrate.graph.interface import label_feed
    from migrate.graph.lowering import lower
    from migrate.graph.metagraph import read_graph
    from migrate.model.named_inputs import with_computed
    from migrate.open import open_model

    with open_model(settings.checkpoint) as checkpoint:
        prefix = checkpoint.prefix
    meta = settings.meta or graph_file(settings.checkpoint)
    graph = read_graph(meta)
    takes_labels = label_feed(graph)
    named = list(settings.named)
    known = {name for _, name, _ in named}
    if takes_labels is not None and in_session(takes_labels) not in map(in_session, known):
        named.append((settings.label, takes_labels, False))
    inputs = with_computed(lower(graph), [name for _, name, _ in named])
    return settings._replace(checkpoint=prefix, meta=meta, named=named, inputs=inputs)


def _identities(settings: Settings) -> Identities:
    """The identities of all inputs before the conversion."""
    from migrate.scoring.model_files import of_checkpoint
    from parity.io.data_files import files_of
    from parity.io.identity import identify
    from semisync.common.distribution import version

    assert settings.meta is not None
    checkpoint = of_checkpoint(settings.checkpoint, settings.meta)["sha256"]
    data = [identify(file).sha256 for file in files_of(settings.data, settings.text is not None)]
    return Identities(checkpoint, data, "", version())


def _converted(settings: Settings) -> str:
    """The identity of the conversion as it is now: model.py may have been edited, a file may be
    damaged."""
    from migrate.scoring.model_files import of_conversion

    found = [of_conversion(settings.converted)["sha256"]]
    for entry in sorted(os.scandir(settings.converted), key=lambda entry: entry.name):
        if entry.is_file():
            stat = entry.stat()
            found.append("{} {} {}".format(entry.name, stat.st_size, stat.st_mtime_ns))
    return hashlib.sha256("\n".join(found).encode()).hexdigest()


def _compare(
    settings: Settings, done: List[Part], sigmoid: bool
) -> Tuple[Optional[Any], Dict[str, Any], Part]:
    """The comparison of the AUC, its basis, and its part.

    Too few rows for conclusions on other rows leave nothing open where the values and the outputs
    are TensorFlow's: both sides are then one function, not two that were trained.
    """
    by_name = {part.name: part for part in done}
    values, scored = by_name["values"], [by_name["tensorflow"], by_name["torch"]]
    compared = COMPARED["auc"]
    missing = [part.name for part in scored if part.state is State.NOT_RUN]
    if missing:
        finding = "there are no scores of {}".format(" and ".join(missing))
        return None, {}, Part("auc", compared, State.NOT_RUN, finding, {})
    hashed = values.state is State.PASSED and values.found["hashes"]
    verified = settings.file(VERIFIED) if hashed else None
    comparison, provenance = scores.compare(settings, sigmoid, verified)
    state = {
        "EQUIVALENT": State.PASSED,
        "NOT_EQUIVALENT": State.FAILED,
        "INCONCLUSIVE": State.OPEN,
    }[comparison.verdict.value]
    finding = "TensorFlow {:.6f}, torch {:.6f}, difference {:+.1e}; {}".format(
        comparison.baseline.auc,
        comparison.candidate.auc,
        comparison.delta,
        comparison.verdict.value.replace("_", " "),
    )
    same = all(by_name[name].state is State.PASSED for name in ("values", "forward", "rows"))
    if state is State.OPEN and same and abs(comparison.delta) < settings.margin:
        state = State.PASSED
        finding += (
            " by itself, as {:,} rows, {:,} of them positive, say little of other rows; the values "
            "and outputs are TensorFlow's".format(comparison.rows, comparison.positives)
        )
    # Scores that differ from run to run, see `parts`, prove no AUC.
    if state is State.PASSED and any(part.state is State.OPEN for part in scored):
        state = State.OPEN
    return comparison, provenance, Part("auc", compared, state, finding, {})
