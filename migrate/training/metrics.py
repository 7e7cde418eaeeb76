"""Metrics of a model's scores of rows not trained on yet: AUC, log loss, normalised entropy.

1. Every batch is scored before the step that it is for, so that the metrics of one pass over the
   data are those of rows that the model had not seen: progressive validation.
2. Scores are counted in the fixed bins of `parity.histogram`, by label and day. Counts of several
   processes and of the parts of an interrupted training add up to those of the whole: the AUC is
   the same to the last digit, and within sum(positives x negatives) / (2 P Q) over the bins of the
   exact one.
3. Normalised entropy is log loss over that of always predicting the share of ones (He et al. 2014).
"""

from __future__ import annotations

import math
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

import numpy
import torch
import torch.distributed as dist

from migrate.training.task import Day
from parity.histogram.bins import bins_of
from semisync.common.compiled.jit import compiled
from semisync.common.errors import BadInput

_UNIT_BITS = 32
_UNITS = float(1 << _UNIT_BITS)
_LARGEST = float(1 << 20)  # loss of a row, so that the sum does not overflow
_WAITING = 1 << 16  # rows


class Figures(NamedTuple):
    """The metrics of some rows.

    Attributes:
        loss, entropy: mean log loss, normalised entropy.
        auc, entropy: None where one class alone occurs.
    """

    rows: int
    positives: int
    loss: float
    auc: Optional[float]
    entropy: Optional[float]


class Counts:
    """Rows by bin and label, and the sum of their log losses in units of 2^-32: an integer, which
    is the same in whatever order it is added up.

    Rows wait until there are about as many of them as bins in use: to merge the bins of one batch
    with those of all before it costs more than a step.
    """

    def __init__(self) -> None:
        self._bins = numpy.empty(0, numpy.int64)
        self._rows = numpy.empty((2, 0), numpy.int64)  # [label, bin in use]
        self._loss = 0
        self._waiting: List[Tuple[numpy.ndarray, numpy.ndarray]] = []
        self._count = 0

    def add(self, positive: numpy.ndarray, logits: numpy.ndarray) -> None:
        """Counts rows with logits float32 [n] and labels `positive`, bool [n]."""
        self._waiting.append((positive, logits.copy()))  # without the tensor that they may be of
        self._count += len(logits)
        if self._count >= max(_WAITING, len(self._bins)):
            self._settle()

    def merge(self, other: Mapping[str, Any]) -> None:
        """Adds the result of `state`."""
        bins, rows = (numpy.asarray(other[part], numpy.int64) for part in ("bins", "rows"))
        self._settle()
        self._merge(bins, rows.reshape(2, -1))
        self._loss += other["loss"]

    def state(self) -> Dict[str, Any]:
        """The state: the bins in use int64 [bins], the rows of each label and bin int64
        [2, bins], the loss."""
        self._settle()
        return {"bins": self._bins, "rows": self._rows, "loss": self._loss}

    def _settle(self) -> None:
        """Counts the rows that wait."""
        if self._waiting:
            positive, logits = map(numpy.concatenate, zip(*self._waiting))
            self._waiting, self._count = [], 0
            # A key of bin and label, so that one sort brings both together.
            self._merge(*_counted(numpy.sort(2 * bins_of(logits) + positive)))
            wide = logits.astype(numpy.float64)
            losses = numpy.logaddexp(0.0, numpy.where(positive, -wide, wide))
            units = numpy.rint(numpy.minimum(losses, _LARGEST) * _UNITS).astype(numpy.int64)
            whole, rest = units >> _UNIT_BITS, units & ((1 << _UNIT_BITS) - 1)  # whose sums fit
            self._loss += (int(whole.sum()) << _UNIT_BITS) + int(rest.sum())

    def _merge(self, bins: numpy.ndarray, rows: numpy.ndarray) -> None:
        self._bins, self._rows = _merged(self._bins, self._rows, bins, rows)

    def figures(self) -> Optional[Figures]:
        """The figures, if there is a row."""
        self._settle()
        negatives, positives = (int(n) for n in self._rows.sum(1))
        count = negatives + positives
        if not count:
            return None
        loss = self._loss / _UNITS / count
        if not (negatives and positives):
            return Figures(count, positives, loss, None, None)
        share = positives / count
        entropy = -share * math.log(share) - (1 - share) * math.log1p(-share)
        auc = int(_won(self._rows)) / (2 * positives * negatives)
        return Figures(count, positives, loss, auc, loss / entropy)


class Metrics:
    """Counts by day; those of data without days are of the day ""."""

    def __init__(self) -> None:
        self._days: Dict[str, Counts] = {}

    def add(
        self, labels: torch.Tensor, scores: torch.Tensor, days: Optional[Sequence[Day]] = None
    ) -> None:
        """Counts one batch.

        Args:
            labels: [rows] or [rows, 1], 0 or 1.
            scores: logits of the same rows.

        Raises:
            BadInput: other labels, or scores that are not finite.
        """
        logits = scores.detach().reshape(-1).float().cpu().numpy()
        given = labels.detach().reshape(-1).cpu().numpy()
        if len(given) != len(logits):
            raise BadInput(
                f"the model gives {len(logits)} scores for {len(given)} labels; expected one each"
            )
        positive = given == 1
        if not (positive | (given == 0)).all():
            raise BadInput(f"a label is {given[~positive & (given != 0)][0]}, expected 0 or 1")
        if not numpy.isfinite(logits).all():
            raise BadInput("a score is not finite: the training has diverged")
        if days is None:
            self._of("").add(positive, logits)
            return
        names, codes = numpy.unique(numpy.asarray(days), return_inverse=True)
        for code, name in enumerate(names):
            self._of(str(name)).add(positive[codes == code], logits[codes == code])

    def whole(self) -> Optional[Figures]:
        """The figures of all rows, if there are any."""
        if len(self._days) == 1:
            return next(iter(self._days.values())).figures()
        total = Counts()
        for counts in self._days.values():
            total.merge(counts.state())
        return total.figures()

    def by_day(self) -> Dict[str, Figures]:
        """The figures by day, in order; empty for data without days."""
        found = {
            day: self._days[day].figures() for day in sorted(filter(None, self._days), key=_place)
        }
        return {day: figures for day, figures in found.items() if figures is not None}

    def gathered(self) -> "Metrics":
        """The metrics of all processes; every process must call it."""
        if not dist.is_initialized():
            return self
        states: List[Any] = [None] * dist.get_world_size()
        dist.all_gather_object(states, self.state())
        return Metrics.of(states)

    def state(self) -> Dict[str, Dict[str, Any]]:
        """The state; `of` restores it."""
        return {day: counts.state() for day, counts in self._days.items()}

    @classmethod
    def of(cls, states: Sequence[Mapping[str, Mapping[str, Any]]]) -> "Metrics":
        """The sum of the results of `state`."""
        metrics = cls()
        for state in states:
            for day, counts in state.items():
                metrics._of(day).merge(counts)
        return metrics

    def _of(self, day: str) -> Counts:
        return self._days.setdefault(day, Counts())


def _place(day: str) -> Any:
    """Numbers by their size, before other names."""
    return (0, int(day), "") if day.lstrip("-").isdecimal() else (1, 0, day)


@compiled
def _counted(keys):
    """The bins of ascending keys, 2 * bin + label of each row, and the rows of each."""
    bins = numpy.empty(len(keys), numpy.int64)
    rows = numpy.zeros((2, len(keys)), numpy.int64)
    found = 0
    for key in keys:
        if not found or bins[found - 1] != key >> 1:
            bins[found] = key >> 1
            found += 1
        rows[key & 1, found - 1] += 1
    return bins[:found].copy(), rows[:, :found].copy()


@compiled
def _merged(bins, rows, others, more):
    """The bins that are in either, and the rows of each: `rows` are of `bins`, `more` of
    `others`."""
    most = len(bins) + len(others)
    every, total = numpy.empty(most, numpy.int64), numpy.zeros((2, most), numpy.int64)
    i, j, found = 0, 0, 0
    while i < len(bins) or j < len(others):
        own = j == len(others) or (i < len(bins) and bins[i] <= others[j])
        other = i == len(bins) or (j < len(others) and others[j] <= bins[i])
        if own:
            every[found] = bins[i]
            total[:, found] += rows[:, i]
            i += 1
        if other:
            every[found] = others[j]
            total[:, found] += more[:, j]
            j += 1
        found += 1
    return every[:found].copy(), total[:, :found].copy()


@compiled
def _won(rows):
    """Twice the pairs of a positive with a negative row of a lower bin, and once those of one."""
    negatives, pairs = 0, 0
    for k in range(rows.shape[1]):
        pairs += rows[1, k] * (2 * negatives + rows[0, k])
        negatives += rows[0, k]
    return pairs
