"""Are the dropouts of model.py those of the graph: their rates, places and masks' shapes?

While steps are compared dropout is off on both sides: a BatchNorm behind masks magnifies rounding.
So the dropouts are compared separately, on one batch:

1. A dropout's place is identified by its input, which is the same on both sides, since nothing is
   dropped.
2. At the same place the rates are the same, and the masks have one shape.
3. model.py has no others.
4. If TensorFlow does not expose a dropout, in a loop or a function, or in a branch other than that
   of training, a rate in model.py without a place must be one of these; `unread` reports them.
"""

from __future__ import annotations

from typing import Dict, List, Mapping, NamedTuple, Sequence, Tuple

import numpy

from migrate.behaviour.subject import Subject
from migrate.behaviour.trained.listening import Dropped
from migrate.graph.metagraph import Edge
from migrate.model.emitter import Emitter
from migrate.model.training.distance import relative
from migrate.model.training.steps import Difference
from semisync.common.sentences import some_of

_SAME = 1e-3  # relative to the root mean square: rounding, not another place
_RATES = 1e-6


class Place(NamedTuple):
    """A dropout of the graph: its node, its rate, its input, and the random tensor of its mask."""

    node: str
    rate: float
    source: Edge
    drawn: Edge


class Dropouts:
    """The dropouts of a model.

    Args:
        emitter: of its source.
        trains: whether it is in training mode.

    Attributes:
        places: those that can be read.
        unread: the rates of the others, by node.
    """

    def __init__(self, subject: Subject, emitter: Emitter, trains: bool) -> None:
        self.places: List[Place] = []
        self.unread: Dict[str, float] = {}
        for node, layer in emitter.layers.items():
            if layer.drops is None:
                continue
            source, (rate, drawn) = layer.inputs[0], layer.drops
            # Only a dropout that runs in every training step can be fetched with it.
            there = trains and emitter.while_training(node)
            if there and subject.has(source) and subject.has(drawn):
                self.places.append(Place(node, rate, source, drawn))
            else:
                self.unread[node] = rate

    @property
    def tensors(self) -> List[Edge]:
        """The tensors to fetch from TensorFlow."""
        return [edge for place in self.places for edge in (place.source, place.drawn)]

    @property
    def unread_text(self) -> List[str]:
        """Sentences on the dropouts that cannot be read."""
        return [f"the places of the dropout in {some_of(self.unread)}"] if self.unread else []

    def compare(
        self, values: Mapping[Edge, numpy.ndarray], ours: Sequence[Dropped]
    ) -> List[Difference]:
        """The difference of each dropout's rate from TensorFlow's; infinite if one side lacks it.

        Args:
            values: of `tensors`, for a batch.
            ours: those of model.py in a run on it.
        """
        left = [_Ours(one.rate, one.shape, one.source.detach().cpu().numpy()) for one in ours]
        found = []
        for place in self.places:
            here = [one for one in left if _is_at(one, values[place.source], values[place.drawn])]
            best = min(here, key=lambda one: abs(one.rate - place.rate), default=None)
            if best is None:
                found.append(_difference(float("inf"), place.node))
                continue
            left = [one for one in left if one is not best]
            apart = abs(best.rate - place.rate)
            far = apart / place.rate if apart > _RATES else 0.0
            found.append(_difference(far, place.node))
        for one in left:
            if not any(abs(one.rate - rate) <= _RATES for rate in self.unread.values()):
                found.append(_difference(float("inf"), f"at {one.rate:g}, which TensorFlow lacks,"))
        return found


class _Ours(NamedTuple):
    rate: float
    shape: Tuple[int, ...]
    source: numpy.ndarray


def _is_at(one: _Ours, source: numpy.ndarray, drawn: numpy.ndarray) -> bool:
    if one.shape != drawn.shape or one.source.shape != source.shape:
        return False
    scale = float(numpy.sqrt(numpy.mean(numpy.square(source, dtype=float)))) if source.size else 0.0
    return relative(one.source, source, scale) <= _SAME


def _difference(far: float, name: str) -> Difference:
    return Difference(far, "dropout", name, 1)
