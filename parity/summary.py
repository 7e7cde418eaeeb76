"""Scores counted into histograms: any number of rows in bounded memory, and parts that add up.

1. Fine: for each model, rows by the leading 23 bits of the score's sortable bits (parity.ordering;
   float64 is rounded to float32 first) and by label. Pairs in different bins are decided as they
   are; pairs that share one count half, so the AUC is off by at most

       sum over bins of positives x negatives / (2 P Q)

   which is certified, not estimated, and is added to the interval.
2. Joint: rows by the leading 16 bits of both scores and by label, only the cells in use. They give
   the paired variance (parity.variance) with each placement known to half a bin's mass; by
   Minkowski's inequality the true standard error is at most the joint one with the root mean square
   of those halves added to each class's spread, and that upper value is reported.
3. Sums of the row-wise figures: log loss, its paired difference, the scores.

All are counts and sums, so summaries of shards, days or machines add to the summary of the whole.
Weights and clusters are not kept: they need the rows.
"""

import io
import pathlib
import zipfile
from typing import Dict, List, Sequence, Tuple

import numpy as np

from parity.calibration import losses
from parity.ordering import sortable_bits
from semisync.errors import BadInput
from semisync.files import write_bytes

FINE_BITS = 23
JOINT_BITS = 16
FORMAT = 1  # of the file
_BAND = 64  # candidate's bin - baseline's, from -32; cells within it are counted in an array
_PENDING = 1 << 21  # cells that wait to be put together


class Summary:
    """Counts of two models' scores. `fine` is int64 (model, label, 2^23)."""

    def __init__(self) -> None:
        self.fine = np.zeros((2, 2, 1 << FINE_BITS), np.int64)
        self._band = np.zeros((2 << JOINT_BITS) * _BAND, np.int64)
        self._cells: List[Tuple[np.ndarray, np.ndarray]] = []
        self.probabilities = True  # all scores so far lie strictly inside (0, 1)
        self.score_sums = np.zeros(2)
        self.loss_sums = np.zeros(2)
        self.difference = np.zeros(2)  # sum and sum of squares of candidate loss - baseline loss

    @property
    def rows(self) -> int:
        return int(self.fine[0].sum())

    @property
    def positives(self) -> int:
        return int(self.fine[0, 1].sum())

    def add(self, positive: np.ndarray, baseline: np.ndarray, candidate: np.ndarray) -> None:
        """Counts checked rows: bool (n,), and finite float32 or float64 (n,) scores."""
        coarse = []
        for model, scores in enumerate((baseline, candidate)):
            bits = sortable_bits(scores.astype(np.float32, copy=False))
            bins = (bits >> np.uint32(32 - FINE_BITS)).astype(np.intp)
            np.add.at(self.fine[model, 0], bins, 1)
            of_positives = bins[positive]
            np.add.at(self.fine[model, 1], of_positives, 1)
            np.subtract.at(self.fine[model, 0], of_positives, 1)
            coarse.append((bits >> np.uint32(32 - JOINT_BITS)).astype(np.intp))
        self._add_joint(positive, *coarse)
        self._add_losses(positive, baseline, candidate)

    def cells(self) -> Tuple[np.ndarray, np.ndarray]:
        """Joint cells in use: uint64 keys (baseline bits, candidate bits, label), int64 counts."""
        used = np.flatnonzero(self._band)
        if len(used):
            old = used // (2 * _BAND)
            new = old + used // 2 % _BAND - _BAND // 2
            self._cells.append((_keys(old, new, used % 2), self._band[used]))
            self._band[used] = 0
        if len(self._cells) != 1:
            keys = np.concatenate([np.zeros(0, np.uint64), *(keys for keys, _ in self._cells)])
            counts = np.concatenate([np.zeros(0, np.int64), *(c for _, c in self._cells)])
            order = np.argsort(keys, kind="stable")  # merges runs that are sorted already
            keys, counts = keys[order], counts[order]
            differs = np.ones(len(keys), bool)
            differs[1:] = keys[1:] != keys[:-1]
            first = np.flatnonzero(differs)
            summed = np.add.reduceat(counts, first) if len(first) else counts
            self._cells = [(keys[first], summed)]
        return self._cells[0]

    def merge(self, other: "Summary") -> None:
        """Adds another part's rows."""
        self.fine += other.fine
        self._cells.append(other.cells())
        self.cells()
        self.probabilities &= other.probabilities
        for name in ("score_sums", "loss_sums", "difference"):
            setattr(self, name, getattr(self, name) + getattr(other, name))

    def save(self, path: str) -> None:
        """Writes the bins in use to a file, whole or not at all."""
        keys, counts = self.cells()
        used = np.flatnonzero(self.fine.any(axis=(0, 1)))
        buffer = io.BytesIO()
        np.savez_compressed(
            buffer,
            format=FORMAT,
            bins=used,
            fine=self.fine[:, :, used],
            keys=keys,
            counts=counts,
            probabilities=self.probabilities,
            score_sums=self.score_sums,
            loss_sums=self.loss_sums,
            difference=self.difference,
        )
        pathlib.Path(path).parent.mkdir(parents=True, exist_ok=True)
        write_bytes(path, buffer.getvalue())

    @classmethod
    def load(cls, path: str) -> "Summary":
        """Reads what `save` wrote.

        Raises: BadInput for a file that is not there, damaged, or not such a summary.
        """
        found = cls()
        try:
            with np.load(path, allow_pickle=False) as data:
                held: Dict[str, np.ndarray] = {name: data[name] for name in data.files}
            if int(held["format"]) != FORMAT:
                raise BadInput(
                    f"{path} has format {int(held['format'])}, but {FORMAT} is expected; make it "
                    "again with this version"
                )
            found.fine[:, :, held["bins"]] = held["fine"]
            found._cells = [(held["keys"], held["counts"])]
            found.probabilities = bool(held["probabilities"])
            found.score_sums, found.loss_sums = held["score_sums"], held["loss_sums"]
            found.difference = held["difference"]
            whole = int(held["counts"].sum()) == found.rows == int(found.fine[1].sum())
        except (OSError, ValueError, KeyError, IndexError, EOFError, zipfile.BadZipFile) as error:
            reason = " ".join(str(error).split())[:200]
            raise BadInput(
                f"{path} is not a partial result of semisync parity, or is damaged: {reason}"
            ) from error
        if not whole or found.fine.min() < 0:
            raise BadInput(f"{path} is damaged: its counts do not add up")
        return found

    def _add_joint(self, positive: np.ndarray, old: np.ndarray, new: np.ndarray) -> None:
        """Counts cells. Near the diagonal, where alike models' rows lie, without a sort."""
        apart = new - old
        apart += _BAND // 2
        far = np.flatnonzero((apart < 0) | (apart >= _BAND))
        place = (old * _BAND + apart) * 2 + positive
        if len(far):
            place[far] = 0  # taken back below
            keys = np.sort(_keys(old[far], new[far], positive[far]))
            first = np.flatnonzero(np.concatenate(([True], keys[1:] != keys[:-1])))
            self._cells.append((keys[first], np.diff(np.append(first, len(keys)))))
        np.add.at(self._band, place, 1)
        self._band[0] -= len(far)
        if sum(len(keys) for keys, _ in self._cells[1:]) > _PENDING:
            self.cells()

    def _add_losses(
        self, positive: np.ndarray, baseline: np.ndarray, candidate: np.ndarray
    ) -> None:
        if not self.probabilities:
            return
        found = losses(positive, baseline), losses(positive, candidate)
        if found[0] is None or found[1] is None:
            self.probabilities = False
            return
        self.loss_sums += [float(found[0].sum()), float(found[1].sum())]
        self.score_sums += [float(s.sum(dtype=np.float64)) for s in (baseline, candidate)]
        gap = found[1] - found[0]
        self.difference += [float(gap.sum()), float(gap @ gap)]


def _keys(old: np.ndarray, new: np.ndarray, label: np.ndarray) -> np.ndarray:
    keys = (old << (1 + JOINT_BITS)) | (new << 1)
    return (keys | label).astype(np.uint64)


def merged(parts: Sequence[Summary]) -> Summary:
    """The summary of all rows of the parts."""
    whole = Summary()
    for part in parts:
        whole.merge(part)
    return whole
