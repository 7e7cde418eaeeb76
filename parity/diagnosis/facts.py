"""What is known of how one side's model was trained and is computed.

`known_facts(path)` reads them from

    a TensorFlow checkpoint     its prefix, with PREFIX.meta where that is there
    a converted directory       what `semisync convert` wrote, and model.json as it was edited
    a file of settings          .yaml, .yml or .json, written by hand; it may name one of the
                                others, whose facts its own words then replace

Words and numbers are TensorFlow's: `momentum` of BatchNorm is 1 - torch's.
"""

import os
import re
from dataclasses import dataclass, field
from typing import Dict, Iterable, Mapping, NamedTuple, Optional, Set

import numpy as np

COMBINERS = ("sum", "mean", "sqrtn")
SUFFIXES = (".yaml", ".yml", ".json")  # of files of settings


class MovingStatistics(NamedTuple):
    """Of one BatchNorm layer: float64 (channels,) each."""

    mean: np.ndarray
    variance: np.ndarray

    @property
    def initial(self) -> bool:
        """Whether they are as TensorFlow and torch begin them: 0 and 1."""
        return not self.mean.any() and bool((self.variance == 1).all())


@dataclass(frozen=True, eq=False)
class Facts:
    """All that is known of one side; what is not known is None or absent.

    source         where the facts are from
    optimizer      its name, as TensorFlow's ("Adagrad"); several are joined by ", "
    settings       of the optimizer: learning_rate, epsilon, initial_accumulator_value, beta1, ...
    denominator    median of the optimizer's second-moment slot, over values that were trained: of
                   Adagrad's and Ftrl's accumulators, Adam's v, RMSProp's mean square
    slots          how many variables have the optimizer's state beside them; None: not known
    moving         BatchNorm's moving statistics by the layer's name
    batch_norm     of BatchNorm: epsilon, momentum
    combiners      "sum", "mean" or "sqrtn" by table; under "" for all that are not named
    cold           by table: bool (rows,), ids whose row is all zero or was never trained
    step           the global step that was saved; None: not known
    """

    source: str
    optimizer: Optional[str] = None
    settings: Dict[str, float] = field(default_factory=dict)
    denominator: Optional[float] = None
    slots: Optional[int] = None
    moving: Dict[str, MovingStatistics] = field(default_factory=dict)
    batch_norm: Dict[str, float] = field(default_factory=dict)
    combiners: Dict[str, str] = field(default_factory=dict)
    cold: Dict[str, np.ndarray] = field(default_factory=dict)
    step: Optional[int] = None


# TensorFlow 1's global step, and the count of updates of an object-based checkpoint's optimizer.
_STEP = re.compile(
    r"(^|/)(global_step|iter|iterations|_iterations)(/\.ATTRIBUTES/VARIABLE_VALUE)?$"
)


def is_step(name: str) -> bool:
    """Whether a variable of that name counts the updates."""
    return _STEP.search(name) is not None


def agreed(settings: Iterable[Mapping[str, float]]) -> Dict[str, float]:
    """The settings of which no two differ."""
    found: Dict[str, Set[float]] = {}
    for one in settings:
        for name, value in one.items():
            found.setdefault(name, set()).add(value)
    return {name: values.pop() for name, values in found.items() if len(values) == 1}


def known_facts(path: str) -> Facts:
    """Reads the facts of one side; of a checkpoint or converted directory all data, in a stream.

    Raises: BadInput for what is neither of the three or is damaged; MissingExtra where reading it
    needs what is not installed.
    """
    if path.lower().endswith(SUFFIXES):
        from parity.diagnosis.settings import read_settings

        return read_settings(path)
    if is_converted(path):
        from parity.diagnosis.converted import read_converted

        return read_converted(path)
    from parity.diagnosis.checkpoint import read_checkpoint

    return read_checkpoint(path)


def check_source(path: str) -> None:
    """Raises as `known_facts` where that is certain to fail, without reading a model's data."""
    if path.lower().endswith(SUFFIXES):
        from parity.diagnosis.settings import check_settings

        check_settings(path)
    elif is_converted(path):
        from migrate.manifest.model import read_manifest

        read_manifest(path)
    else:
        from migrate.checkpoint.bundle import open_checkpoint

        open_checkpoint(path).close()


def is_converted(path: str) -> bool:
    """Whether `semisync convert` wrote it."""
    return os.path.isfile(os.path.join(path, "manifest.json"))
