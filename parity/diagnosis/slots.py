"""What an optimizer's slots say: how it began, and how large its denominators have become."""

import math
from typing import Dict, Optional, Sequence, Tuple

import numpy as np

# Default initial values of the slots (tensorflow/python/training/*.py), by the optimizer.
FIRST: Dict[str, Tuple[float, ...]] = {
    "Adagrad": (0.1,),
    "Adam": (0, 0),
    "Ftrl": (0.1, 0),
    "Momentum": (0,),
    "RMSProp": (1, 0),
}

# Which slot stands under the root of the step's denominator.
SECOND_MOMENT = {"Adagrad": 0, "Adam": 1, "Ftrl": 0, "RMSProp": 0}

_GROWING = ("Adagrad", "Ftrl")  # by their slot 0

_SAMPLE = 1 << 20  # values at most that the median is taken of, evenly spread over all


class SlotSample:
    """What the slots of one optimizer hold, over all variables; its second moments are sampled."""

    def __init__(self, optimizer: str) -> None:
        """optimizer: TensorFlow's name; LazyAdam's slots are Adam's."""
        self._optimizer = optimizer
        self._values = np.zeros(0, np.float32)
        self._step = 1  # one value in so many is kept
        self._smallest = math.inf
        self.seen = 0  # values

    @property
    def second_moment(self) -> Optional[int]:
        """Which slot is to be added."""
        return SECOND_MOMENT.get(self._optimizer)

    def add(self, values: np.ndarray) -> None:
        """Takes some of the values, a floating array; all for their smallest and number."""
        values = values.ravel()
        if values.size:
            self._smallest = min(self._smallest, float(str(values.min())))  # 0.1, not 0.10000000149
            some = values[:: self._step].astype(np.float32)
            self._values = np.concatenate([self._values, some])
            while len(self._values) > _SAMPLE:
                self._values, self._step = self._values[::2], 2 * self._step
            self.seen += len(values)

    @property
    def initial(self) -> Tuple[float, ...]:
        """What each slot of an untrained value holds; () where that is not known.

        Adagrad's and Ftrl's accumulators only grow, from a value that is a setting: where rows
        were never trained it is the smallest that the model holds.
        """
        values = FIRST.get(self._optimizer, ())
        if self._optimizer in _GROWING and self.seen:
            return (self._smallest, *values[1:])
        return values

    def settings(self) -> Dict[str, float]:
        """What the slots tell of the optimizer's settings."""
        if self._optimizer in _GROWING and self.seen:
            return {"initial_accumulator_value": self._smallest}
        return {}

    def denominator(self) -> Optional[float]:
        """Median of the values that were trained; None where there are none."""
        if self.second_moment is None or not self.seen:
            return None
        initial = self.initial[self.second_moment]
        trained = self._values[self._values != np.float32(initial)]
        return float(np.median(trained)) if trained.size else None


def untrained(slots: Sequence[np.ndarray], initial: Sequence[float]) -> np.ndarray:
    """bool (rows,): rows whose every slot, each (rows, dim), holds its initial value."""
    same = np.ones(len(slots[0]), bool)
    for slot, value in zip(slots, initial):
        same &= (slot == slot.dtype.type(value)).all(axis=1)
    return same
