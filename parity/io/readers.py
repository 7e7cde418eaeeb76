"""Reads the input of `parity.compare` from one file with both scores, or two joined by a key.

1. The named columns are read (parity.io.batches), turned into numbers (parity.io.columns) and
   checked (parity.inputs.checks) while a row number still means a row of its file.
2. Two files are joined by key (parity.io.join). Where both carry the label, it must agree; group
   and weight are the baseline file's.
3. Every file is identified by its SHA-256, and misses are counted.
"""

from typing import Any, Dict, FrozenSet, List, NamedTuple, Optional, Sequence, Tuple, Union

import numpy as np
import pyarrow as pa

from parity.inputs.checks import Column, check_labels, check_scores, check_weights
from parity.inputs.frames import Frame
from parity.inputs.ids import Ids
from parity.io.batches import Progress, of_no_file, parts_of, read_columns
from parity.io.columns import FILL, to_codes, to_day_names, to_ids, to_names, to_numbers, with_fills
from parity.io.identity import Copies, FileIdentity, identify_all
from parity.io.join import (
    Match,
    in_another_order,
    match_keys,
    match_places,
    refuse_disagreement,
    refuse_repeated,
    repeated,
)
from parity.io.keys import key_of, refuse_unlike
from parity.io.logits import ROLES
from parity.io.scores import to_scores
from parity.io.text_format import TextFormat

Source = Union[str, Frame]  # the path of a data set, or a table in memory


class ColumnNames(NamedTuple):
    """The columns to read. Without a candidate file, both scores are in the baseline's."""

    label: str
    baseline_score: str
    candidate_score: str
    key: Union[None, str, Tuple[str, ...]] = None  # names each row once, of one column or several
    group: Optional[str] = None
    weight: Optional[str] = None
    parts: Tuple[str, ...] = ()  # days and slices
    ids: Tuple[str, ...] = ()  # inputs of embedding tables
    logits: Tuple[str, ...] = ()  # which of parity.io.logits.ROLES are logits, not scores
    fills: Tuple[Tuple[str, str], ...] = ()  # group, day or slice: the fill of missing values
    text: Optional[TextFormat] = None  # how text files are written, whatever their names
    day: Optional[str] = None  # which of `parts`
    progress: Optional[Progress] = None  # called with a file and its rows read so far

    @property
    def keys(self) -> Tuple[str, ...]:
        """The columns of the key; none where rows are known by their place."""
        return (self.key,) if isinstance(self.key, str) else tuple(self.key or ())

    @property
    def all(self) -> FrozenSet[str]:
        """Every column that is read."""
        scores = (self.label, self.baseline_score, self.candidate_score)
        return frozenset(filter(None, [*scores, self.weight, *self.texts]))

    @property
    def texts(self) -> Tuple[str, ...]:
        """The columns that identify rather than count."""
        named = [*self.keys, self.group, *self.parts, *self.ids]
        return tuple(dict.fromkeys(filter(None, named)))


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
    warnings: Tuple[str, ...] = ()  # of rows that were matched by their place

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


def read_one(path: Source, names: ColumnNames) -> Sample:
    """Reads a data set (parity.io.batches) that holds the label and both models' scores.

    Raises:
        BadInput: a value that cannot be used, with file, column and data row (from 1); repeated
            keys, where `names.key` is given; a file with the rows of another.
    """
    table = _read(path, names, [names.label, names.baseline_score, names.candidate_score])
    labels, clusters, weights = _common(path, table, names)
    scores = [_scores(path, table, names, role) for role in ROLES]
    files = _identities(table, names)
    if names.keys:
        refuse_repeated(repeated(_keys(path, table, names)), _key_column(path, table, names))
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
    baseline_path: Source,
    candidate_path: Source,
    names: ColumnNames,
    allow_misses: bool = False,
) -> Sample:
    """Reads one data set per model and joins them by `names.key`, or by place without one.

    Args:
        allow_misses: leave out, and count, rows whose key is in one file only.

    Raises:
        BadInput: as `read_one`, or duplicate keys, misses, and labels that disagree.
    """
    old = _read(baseline_path, names, [names.label, names.baseline_score])
    labels, clusters, weights = _common(baseline_path, old, names)
    baseline = _scores(baseline_path, old, names, "baseline_score")
    shared = () if names.keys else _shared(baseline_path, candidate_path, names)
    new = _table(
        candidate_path,
        names,
        numbers=[names.label, names.candidate_score],
        texts=[*names.keys, *shared],
        optional=[names.label, *shared],
    )
    candidate = _scores(candidate_path, new, names, "candidate_score")
    ends = _key_column(baseline_path, old, names), _key_column(candidate_path, new, names)
    if names.keys:
        for key in names.keys:
            columns = _column(baseline_path, old, key), _column(candidate_path, new, key)
            refuse_unlike((old[key].type, new[key].type), columns)
        keys = [
            _keys(path, table, names)
            for path, table in ((baseline_path, old), (candidate_path, new))
        ]
        match = match_keys(keys[0], keys[1], ends, allow_misses)
    else:
        match = match_places(len(labels), len(candidate), (str(baseline_path), str(candidate_path)))
    if names.label in new.column_names:
        column = _column(candidate_path, new, names.label)
        theirs = check_labels(to_numbers(new[names.label], column), column)
        _refuse_disagreement(
            labels,
            theirs,
            match,
            _column(baseline_path, old, names.label),
            column,
            bool(names.keys),
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
        warnings=_warnings(baseline_path, candidate_path, old, new, shared),
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
    # A further baseline is joined to the first as a candidate is.
    swapped = names._replace(candidate_score=names.baseline_score)
    others = [read_two(baselines[0], path, swapped) for path in baselines[1:]]
    more = [read_two(baselines[0], path, names) for path in candidates[1:]]
    files = {file.path: file for read in [sample, *others, *more] for file in read.files}
    return (
        sample._replace(files=tuple(files.values())),
        [sample.baseline, *(other.candidate for other in others)],
        [sample.candidate, *(other.candidate for other in more)],
    )


def _read(path: Source, names: ColumnNames, numbers: List[str]) -> pa.Table:
    if names.weight is not None:
        numbers = [*numbers, names.weight]
    return _table(path, names, numbers, names.texts)


def _table(
    source: Source,
    names: ColumnNames,
    numbers: Sequence[str],
    texts: Sequence[str],
    optional: Sequence[str] = (),
) -> pa.Table:
    """The columns of a data set, or of a table in memory."""
    fills = {name: fill for name, fill in names.fills if name in texts}
    if isinstance(source, Frame):
        table = with_fills(
            source.chosen([*numbers, *texts], optional),
            fills,
            lambda name: Column(name, str(source)),
        )
        return of_no_file(table)
    return read_columns(
        source, numbers, texts, optional, fills, text=names.text, progress=names.progress
    )


def _keys(path: Source, table: pa.Table, names: ColumnNames) -> pa.ChunkedArray:
    return key_of(table, names.keys, lambda name: _column(path, table, name))


def _key_column(path: Source, table: pa.Table, names: ColumnNames) -> Column:
    """The key's name in messages."""
    return _column(path, table, ", ".join(names.keys))


def _column(path: Source, table: pa.Table, name: str) -> Column:
    return Column(name, str(path), parts_of(table))


def _identities(table: pa.Table, names: ColumnNames) -> Tuple[FileIdentity, ...]:
    return identify_all(parts_of(table), names.text)


def _refuse_copies(table: pa.Table, *columns: np.ndarray) -> None:
    """Raises BadInput for two files of the same rows; columns: labels and scores, (n,) each."""
    copies, before = Copies(), 0
    for file, rows in parts_of(table):
        if rows:
            copies.add(file, *(column[before : before + rows] for column in columns))
        before += rows
    copies.refuse()


def _parts(path: Source, table: pa.Table, names: ColumnNames) -> Dict[str, np.ndarray]:
    parts = {}
    for name in names.parts:
        named = to_day_names if name == names.day else to_names
        column = named(table[name], _column(path, table, name), FILL)
        encoded = column.combine_chunks().dictionary_encode()  # a Python object per value, not row
        parts[name] = np.asarray(encoded.dictionary.to_pylist())[encoded.indices.to_numpy()]
    return parts


def _ids(path: Source, table: pa.Table, names: ColumnNames) -> Dict[str, Ids]:
    return {name: to_ids(table[name], _column(path, table, name)) for name in names.ids}


def _common(
    path: Source, table: pa.Table, names: ColumnNames
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


def _scores(path: Source, table: pa.Table, names: ColumnNames, role: str) -> np.ndarray:
    """The checked scores of one of parity.io.logits.ROLES."""
    name = getattr(names, role)
    column = _column(path, table, name)
    return check_scores(to_scores(table[name], column), column)


def _shared(baseline: Source, candidate: Source, names: ColumnNames) -> Tuple[str, ...]:
    """Columns that both sides may have, which show whether the rows are in one order."""
    if isinstance(baseline, Frame) and isinstance(candidate, Frame):
        scores = {names.label, names.baseline_score, names.candidate_score}
        held = baseline.table.column_names
        return tuple(
            name for name in held if name in candidate.table.column_names and name not in scores
        )
    return names.texts


def _warnings(
    baseline: Source, candidate: Source, old: pa.Table, new: pa.Table, shared: Sequence[str]
) -> Tuple[str, ...]:
    """Warnings where shared columns show that rows matched by place do not belong together."""
    if isinstance(baseline, Frame) and isinstance(candidate, Frame):
        old, new = baseline.table, candidate.table
    return in_another_order(old, new, shared)


def _refuse_disagreement(
    ours: np.ndarray,
    theirs: np.ndarray,
    match: Match,
    our_column: Column,
    their_column: Column,
    by_key: bool,
) -> None:
    differ = ours[match.baseline] != theirs[match.candidate]
    first = int(differ.argmax())
    mine, other = int(match.baseline[first]), int(match.candidate[first])
    hint = "is the key right?"
    if not by_key:
        hint = "name the columns by which rows belong together (--key, key=)"
        if ours.sum() == theirs.sum():
            hint = f"as many are 1 on both sides, so that the rows stand in another order: {hint}"
    refuse_disagreement(
        int(differ.sum()),
        (our_column, mine, ours[mine]),
        (their_column, other, theirs[other]),
        hint,
    )
