"""A click log: the demo's training data, generated or read.

Invariants, which `save` and `load` check:

1. The rows are in time order: `days` starts at 0 and never falls.
2. Every field of a row has exactly one id, a 64-bit hash of (field, value) that may be negative; a
   missing value has an id of its own.
3. Categorical fields come first, then the bucketised numeric ones.
4. Nothing is split at random: `split` cuts by time, so that a model is evaluated on later rows.

A saved log is a folder: `log.json` (schema, name, fields, numeric, rows) and one .npy per column,
so that a worker needs only numpy. This module runs under Python 3.7 and numpy 1.18.
"""

import json
import os
import pathlib
import shutil
import tempfile
from typing import Any, Dict, NamedTuple, Optional, Tuple, Union

import numpy as np

from semisync.common import json_text
from semisync.common.errors import BadInput, UsageError
from semisync.demo.data.truth import expected_auc

SCHEMA = "semisync/click-log/1"
_COLUMNS = {"ids": np.int64, "labels": np.float32, "days": np.int32, "truth": np.float64}

Path = Union[str, "os.PathLike[str]"]


class ClickLog(NamedTuple):
    """Rows in time order.

    Attributes:
        name: for titles, such as the file's name.
        fields: names of the fields, categorical first.
        numeric: how many of the last fields are bucketised numbers.
        ids: int64 [rows, fields], hashes over the full 64-bit range.
        labels: float32 [rows], 0 or 1.
        days: int32 [rows], 0-based, never falling; days without rows leave gaps.
        truth: float64 [rows], the true click probabilities, or None where they are unknown.
    """

    name: str
    fields: Tuple[str, ...]
    numeric: int
    ids: np.ndarray
    labels: np.ndarray
    days: np.ndarray
    truth: Optional[np.ndarray] = None

    @property
    def rows(self) -> int:
        return len(self.labels)

    @property
    def bayes_auc(self) -> Optional[float]:
        """Expected AUC of the truth on these rows (`truth.expected_auc`); None if unknown.

        Of the held-out rows it is `split(log)[1].bayes_auc`.
        """
        return None if self.truth is None else expected_auc(self.truth)


def split(log: ClickLog, held_out: float = 0.2) -> Tuple[ClickLog, ClickLog]:
    """Cuts a log in two by time: rows to train on, and the last rows to evaluate on.

    The cut lies between two days where that holds out between half and twice the share asked for
    (the nearest such cut is taken), else between two rows.

    Args:
        log: at least two rows.
        held_out: share of the rows to hold out, in (0, 1).

    Returns:
        (train, test), views of the log's arrays; `days` keep their numbers.

    Raises:
        UsageError: the share is not in (0, 1).
        BadInput: one side would lack clicks or non-clicks, so that no AUC could be computed.
    """
    if not 0 < held_out < 1:
        raise UsageError("held_out is {}, expected a share between 0 and 1".format(held_out))
    cut = _cut(np.asarray(log.days), held_out)
    train, test = _part(log, 0, cut), _part(log, cut, log.rows)
    for side, part in (("training", train), ("held-out", test)):
        clicks = int(part.labels.sum())
        if clicks in (0, part.rows):
            raise BadInput(
                "{}: the {} rows, {} of {} in time order, hold {} clicks; both clicks and "
                "non-clicks are needed on either side: give a longer log or another share".format(
                    log.name, side, part.rows, log.rows, clicks
                )
            )
    return train, test


def _cut(days: np.ndarray, held_out: float) -> int:
    wanted = int(round(len(days) * (1 - held_out)))
    midnights = np.flatnonzero(np.diff(days)) + 1
    shares = 1 - midnights / max(len(days), 1)
    midnights = midnights[(shares >= held_out / 2) & (shares <= held_out * 2)]
    if len(midnights):
        return int(midnights[np.argmin(np.abs(midnights - wanted))])
    return wanted


def _part(log: ClickLog, start: int, stop: int) -> ClickLog:
    truth = None if log.truth is None else log.truth[start:stop]
    return log._replace(
        ids=log.ids[start:stop],
        labels=log.labels[start:stop],
        days=log.days[start:stop],
        truth=truth,
    )


def save(log: ClickLog, directory: Path) -> None:
    """Writes a log as a folder, beside its place first and moved there when whole.

    Args:
        log: the `ClickLog` to write.
        directory: the folder to make; an earlier log there is replaced, as is an empty folder.

    Raises:
        BadInput: the log breaks an invariant.
        UsageError: the folder holds something else.
    """
    place = pathlib.Path(directory)
    _check(log, log.name)
    if place.exists() and not (place / "log.json").is_file() and _occupied(place):
        raise UsageError(
            "{} holds something other than a click log; name a new folder".format(place)
        )
    place.parent.mkdir(parents=True, exist_ok=True)
    beside = pathlib.Path(tempfile.mkdtemp(prefix="." + place.name + ".", dir=str(place.parent)))
    try:
        whole = beside / "new"
        whole.mkdir()
        for column in _COLUMNS:
            values = getattr(log, column)
            if values is not None:
                np.save(str(whole / (column + ".npy")), np.ascontiguousarray(values))
        (whole / "log.json").write_text(json.dumps(_described(log), indent=1) + "\n")
        if place.exists():  # os.replace takes the place of a folder only where it is empty
            os.replace(str(place), str(beside / "old"))
        os.replace(str(whole), str(place))
    finally:
        shutil.rmtree(str(beside))


def load(directory: Path) -> ClickLog:
    """Reads the files of `save`; the ids are mapped from the disk, not read.

    Raises:
        BadInput: a file that is missing, corrupt or at odds with `log.json`.
    """
    place = pathlib.Path(directory)
    about = place / "log.json"
    try:
        described = json_text.loads(about.read_text())
    except (OSError, ValueError) as error:
        raise BadInput("{} is not a click log's description: {}".format(about, error)) from error
    if not isinstance(described, dict) or described.get("schema") != SCHEMA:
        raise BadInput("{} has no schema {!r}; did another tool write it?".format(about, SCHEMA))
    try:
        log = ClickLog(
            name=str(described["name"]),
            fields=tuple(map(str, described["fields"])),
            numeric=int(described["numeric"]),
            ids=_column(place, "ids"),
            labels=_column(place, "labels"),
            days=_column(place, "days"),
            truth=_column(place, "truth") if described["truth"] else None,
        )
        rows = int(described["rows"])
    except (KeyError, TypeError, ValueError) as error:
        raise BadInput("{} lacks a key or holds a wrong one: {}".format(about, error)) from error
    _check(log, str(place))
    if rows != log.rows:
        raise BadInput("{} says {} rows, labels.npy has {}".format(about, rows, log.rows))
    return log


def _described(log: ClickLog) -> Dict[str, Any]:
    return {
        "schema": SCHEMA,
        "name": log.name,
        "fields": list(log.fields),
        "numeric": log.numeric,
        "rows": log.rows,
        "truth": log.truth is not None,
    }


def _column(place: pathlib.Path, column: str) -> np.ndarray:
    path = place / (column + ".npy")
    try:
        return np.load(str(path), mmap_mode="r" if column == "ids" else None, allow_pickle=False)
    except (OSError, EOFError, ValueError) as error:
        raise BadInput("{} cannot be read as an array: {}".format(path, error)) from error


def _occupied(place: pathlib.Path) -> bool:
    return not place.is_dir() or any(place.iterdir())


def _check(log: ClickLog, where: str) -> None:
    shapes = {"ids": (log.rows, len(log.fields))}
    for column, dtype in _COLUMNS.items():
        values = getattr(log, column)
        shape = shapes.get(column, (log.rows,))
        if values is not None and (values.dtype != dtype or values.shape != shape):
            raise BadInput(
                "{}: {} is {} {}, expected {} {}".format(
                    where, column, values.dtype, values.shape, np.dtype(dtype), shape
                )
            )
    if not log.fields or not 0 <= log.numeric <= len(log.fields):
        raise BadInput("{}: {} of {} fields numeric".format(where, log.numeric, len(log.fields)))
    if not np.isin(log.labels, (0, 1)).all():
        raise BadInput("{}: a label is neither 0 nor 1".format(where))
    if (np.diff(log.days) < 0).any() or (log.rows and log.days[0] < 0):
        raise BadInput("{}: the days fall or start below 0; expected time order".format(where))
    if log.truth is not None and not ((log.truth >= 0) & (log.truth <= 1)).all():
        raise BadInput("{}: a true click probability is not within [0, 1]".format(where))
