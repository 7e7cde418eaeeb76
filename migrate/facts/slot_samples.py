"""Samples of an optimizer's slots: its initial values, and the size of its denominators."""

import math
from typing import Dict, Iterable, Iterator, Optional, Sequence, Tuple

import numpy as np

from migrate.optimizers.registry import OPTIMIZERS

_SAMPLE = 1 << 20  # most values that the median is computed from, spread evenly over all


class SlotSample:
    """The slot values of one optimizer, over all variables; its second moments are sampled."""

    def __init__(self, optimizer: str) -> None:
        """Takes TensorFlow's name of an optimizer; one without a record has no known slots."""
        record = OPTIMIZERS.get(optimizer)
        self._slots = () if record is None else record.all_slots
        self._second_moment = None if record is None else record.second_moment
        self._values = np.zeros(0, np.float32)
        self._step = 1  # one value in so many is kept
        self._smallest = math.inf
        self.seen = 0  # values

    @property
    def second_moment(self) -> Optional[int]:
        """The number of the slot whose values `add` takes; None: the optimizer has none."""
        return self._second_moment

    def add(self, values: np.ndarray) -> None:
        """Adds values, a floating array: a sample of them, and the smallest and number of all."""
        values = values.ravel()
        if values.size:
            self._smallest = min(self._smallest, float(str(values.min())))  # 0.1, not 0.10000000149
            some = values[:: self._step].astype(np.float32)
            self._values = np.concatenate([self._values, some])
            # Every second value of those so far, and half as many from now on: the sample stays
            # even.
            while len(self._values) > _SAMPLE:
                self._values, self._step = self._values[::2], 2 * self._step
            self.seen += len(values)

    @property
    def initial(self) -> Tuple[float, ...]:
        """The initial value of each slot of an untrained variable; () where that is not known.

        Accumulators such as Adagrad's only grow, from a value that is a setting: where rows were
        never trained it is the smallest that the model holds.
        """
        values = [slot.initial for slot in self._slots]
        if self._second_moment is not None and self._setting is not None:
            values[self._second_moment] = self._smallest
        return tuple(values)

    def settings(self) -> Dict[str, float]:
        """The optimizer's settings, from its slots."""
        return {} if self._setting is None else {self._setting: self._smallest}

    @property
    def _setting(self) -> Optional[str]:
        """The setting that is the second moment's initial value; None if that cannot be seen."""
        if self._second_moment is None or not self.seen:
            return None
        return self._slots[self._second_moment].setting

    def denominator(self) -> Optional[float]:
        """Median of the values that were trained; None where there are none."""
        if self.second_moment is None or not self.seen:
            return None
        initial = self.initial[self.second_moment]
        # In float32, the type of the values: 0.1 itself is not float32(0.1).
        trained = self._values[self._values != np.float32(initial)]
        return float(np.median(trained)) if trained.size else None


def cold_rows(
    rows: Iterable[np.ndarray], slots: Sequence[Iterator[np.ndarray]], initial: Sequence[float]
) -> np.ndarray:
    """The mask, bool (rows,), of rows that are all zero, or all of whose slots have initial values.

    Args:
        rows, slots: in blocks (rows, dim) of the same rows.
        initial: of each slot; unless it is known for all, the slots are not considered.
    """
    told = 0 < len(slots) <= len(initial)
    blocks = [np.zeros(0, bool)]
    for block in rows:
        cold, same = np.logical_not(block.any(axis=1)), np.full(len(block), told)
        for slot, value in zip(slots if told else (), initial):
            held = next(slot)
            same &= (held == held.dtype.type(value)).all(axis=1)
        blocks.append(cold | same)
    return np.concatenate(blocks)
