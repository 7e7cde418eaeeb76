"""From one file with both scores, or two files joined by a key, to what `parity.compare` takes.

1. The named columns are read (parity.io.batches), turned into numbers (parity.io.columns) and
   checked (parity.inputs.checks) while a row number still means a row of its file.
2. Two files are joined by key (parity.io.join). Where both carry the label, it must agree; group
   and weight are the baseline file's.
3. Every file is identified by its SHA-256, and misses are counted.
"""

from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np
import pyarrow as pa

from parity.inputs.checks import Column, check_labels, check_scores, check_weights
from parity.inputs.ids import Ids
from parity.io.batches import Progress, parts_of, read_columns
from parity.io.columns import FILL, to_codes, to_day_names, to_ids, to_names, to_numbers
from parity.io.copies import Copies
from parity.io.identity import FileIdentity, identify_all
from parity.io.join import (
    Match,
    match_keys,
    refuse_disagreement,
    refuse_repeated,
    repeated,
)
from parity.io.keys import refuse_unlike, to_keys
from parity.io.logits import ROLES, probabilities
from parity.io.scores import to_scores
from parity.io.text_format import TextFormat
from semisync.common.errors import BadInput


class ColumnNames(NamedTuple):
    """Which columns to read. Without a candidate file, both scores are in the baseline's."""

    label: str
    baseline_score: str
    candidate_score: str
    key: Optional[str] = None  # names each row once; needed for two files
    group: Optional[str] = None
    weight: Optional[str] = None
    parts: Tuple[str, ...] = ()  # days and slices
    ids: Tuple[str, ...] = ()  # what embedding tables are looked up with
    logits: Tuple[str, ...] = ()  # which of parity.io.logits.ROLES are logits, not scores
    fills: Tuple[Tuple[str, str], ...] = ()  # group, day or slice, what stands for a missing value
    text: Optional[TextFormat] = None  # how text files are written, whatever their names
    day: Optional[str] = None  # which of `parts`
    progress: Optional[Progress] = None  # told how many rows of which file were read


class Sample(NamedTuple):
    """Aligned rows (n,), checked, in the dtypes of `parity.compare`."""

    labels: np.ndarray
    baseline: np.ndarray
    candidate: np.ndarray
    clusters: Optional[np.ndarray]
    weights: Optional[np.ndarray]
    files: Tuple[FileIdentity, ...]
    match: Optional[Match]  # None for one file
    parts: Dict[str, np.ndarray]  # by column; their values as str or int
    ids: Dict[str, Ids]  # by column

    def provenance(self) -> Dict[str, Any]:
        """Files and join as strict JSON values."""
        origin: Dict[str, Any] = {"files": [file.to_json() for file in self.files]}
        if self.match is not None:
            origin["join"] = {
                "matched": len(self.match.baseline),
                "only_baseline": self.match.only_baseline,
                "only_candidate": self.match.only_candidate,
            }
        return origin


def read_one(path: str, names: ColumnNames) -> Sample:
    """Reads a data set (parity.io.batches) that holds the label and both models' scores.

    Raises:
        BadInput: a value that cannot be used, with file, column and data row (from 1); repeated
            keys, where `names.key` is given; a file with the rows of another.
    """
    table = _read(path, names, [names.label, names.baseline_score, names.candidate_score])
    labels, clusters, weights = _common(path, table, names)
    scores = [_scores(path, table, names, role) for role in ROLES]
    files = _identities(table, names)
    if names.key is not None:
        column = _column(path, table, names.key)
        refuse_repeated(repeated(to_keys(table[names.key], column)), column)
    _refuse_copies(table, labels, *scores)
    return Sample(
        labels=labels,
        baseline=scores[0],
        candidate=scores[1],
        clusters=clusters,
        weights=weights,
        files=files,
        match=None,
        parts=_parts(path, table, names),
        ids=_ids(path, table, names),
    )


def read_two(
    baseline_path: str, candidate_path: str, names: ColumnNames, allow_misses: bool = False
) -> Sample:
    """Reads one file per model and joins them by `names.key`.

    Args:
        allow_misses: leave out, and count, rows whose key is in one file only.

    Raises:
        BadInput: as `read_one`, or duplicate keys, misses, and labels that disagree.
    """
    if names.key is None:
        raise BadInput("two files need a key column, whose value names the same row in both")
    old = _read(baseline_path, names, [names.label, names.baseline_score])
    labels, clusters, weights = _common(baseline_path, old, names)
    baseline = _scores(baseline_path, old, names, "baseline_score")
    new = read_columns(
        candidate_path,
        numbers=[names.label, names.candidate_score],
        names=[names.key],
        optional=[names.label],
        text=names.text,
        progress=names.progress,
    )
    candidate = _scores(candidate_path, new, names, "candidate_score")
    ends = _column(baseline_path, old, names.key), _column(candidate_path, new, names.key)
    refuse_unlike((old[names.key].type, new[names.key].type), ends)
    keys = [to_keys(table[names.key], end) for table, end in zip((old, new), ends)]
    match = match_keys(keys[0], keys[1], ends, allow_misses)
    if names.label in new.column_names:
        column = _column(candidate_path, new, names.label)
        theirs = check_labels(to_numbers(new[names.label], column), column)
        _refuse_disagreement(
            labels, theirs, match, _column(baseline_path, old, names.label), column
        )
    kept = match.baseline
    return Sample(
        labels=labels[kept],
        baseline=baseline[kept],
        candidate=candidate[match.candidate],
        clusters=None if clusters is None else clusters[kept],
        weights=None if weights is None else weights[kept],
        files=(*_identities(old, names), *_identities(new, names)),
        match=match,
        parts={name: part[kept] for name, part in _parts(baseline_path, old, names).items()},
        ids={name: ids.take(kept) for name, ids in _ids(baseline_path, old, names).items()},
    )


def read_runs(
    baselines: Sequence[str], candidates: Sequence[str], names: ColumnNames
) -> Tuple[Sample, List[np.ndarray], List[np.ndarray]]:
    """Reads one file per training run and joins each to the first baseline's by `names.key`.

    Returns:
        The sample of the first two files, and the scores of all runs of either side, aligned.

    Raises:
        BadInput: as `read_two`; every key must be in every file.
    """
    sample = read_two(baselines[0], candidates[0], names)
    swapped = names._replace(
        candidate_score=names.baseline_score,
        logits=ROLES if "baseline_score" in names.logits else (),
    )
    others = [read_two(baselines[0], path, swapped) for path in baselines[1:]]
    more = [read_two(baselines[0], path, names) for path in candidates[1:]]
    files = {file.path: file for read in [sample, *others, *more] for file in read.files}
    return (
        sample._replace(files=tuple(files.values())),
        [sample.baseline, *(other.candidate for other in others)],
        [sample.candidate, *(other.candidate for other in more)],
    )


def _read(path: str, names: ColumnNames, numbers: List[str]) -> pa.Table:
    if names.weight is not None:
        numbers = [*numbers, names.weight]
    texts = [name for name in (names.key, names.group, *names.parts, *names.ids) if name]
    fills, progress = dict(names.fills), names.progress
    return read_columns(path, numbers, texts, fills=fills, text=names.text, progress=progress)


def _column(path: str, table: pa.Table, name: str) -> Column:
    return Column(name, path, parts_of(table))


def _identities(table: pa.Table, names: ColumnNames) -> Tuple[FileIdentity, ...]:
    return identify_all(parts_of(table), names.text)


def _refuse_copies(table: pa.Table, *columns: np.ndarray) -> None:
    """Labels and scores, (n,) each, of the files that the table was put together of."""
    copies, before = Copies(), 0
    for file, rows in parts_of(table):
        if rows:
            copies.add(file, *(column[before : before + rows] for column in columns))
        before += rows
    copies.refuse()


def _parts(path: str, table: pa.Table, names: ColumnNames) -> Dict[str, np.ndarray]:
    return {
        name: np.asarray(
            (to_day_names if name == names.day else to_names)(
                table[name], _column(path, table, name), FILL
            ).to_pylist()
        )
        for name in names.parts
    }


def _ids(path: str, table: pa.Table, names: ColumnNames) -> Dict[str, Ids]:
    return {name: to_ids(table[name], _column(path, table, name)) for name in names.ids}


def _common(
    path: str, table: pa.Table, names: ColumnNames
) -> Tuple[np.ndarray, Optional[np.ndarray], Optional[np.ndarray]]:
    """Labels, clusters and weights of the file that carries them."""
    column = _column(path, table, names.label)
    labels = check_labels(to_numbers(table[names.label], column), column)
    clusters = weights = None
    if names.group is not None:
        clusters = to_codes(to_names(table[names.group], _column(path, table, names.group), FILL))
    if names.weight is not None:
        column = _column(path, table, names.weight)
        weights = check_weights(to_numbers(table[names.weight], column), labels, column)
    return labels, clusters, weights


def _scores(path: str, table: pa.Table, names: ColumnNames, role: str) -> np.ndarray:
    """Those of one of parity.io.logits.ROLES."""
    name = getattr(names, role)
    column = _column(path, table, name)
    scores = check_scores(to_scores(table[name], column), column)
    return probabilities(scores) if role in names.logits else scores


def _refuse_disagreement(
    ours: np.ndarray, theirs: np.ndarray, match: Match, our_column: Column, their_column: Column
) -> None:
    differ = ours[match.baseline] != theirs[match.candidate]
    first = int(differ.argmax())
    mine, other = int(match.baseline[first]), int(match.candidate[first])
    refuse_disagreement(
        int(differ.sum()), (our_column, mine, ours[mine]), (their_column, other, theirs[other])
    )
