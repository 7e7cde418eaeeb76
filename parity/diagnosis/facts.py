"""The known facts of one side's model: its training and its computation.

Words and numbers are TensorFlow's: `momentum` of BatchNorm is 1 - torch's.
`migrate.read_facts` reads facts from a path.
"""

import re
from dataclasses import dataclass, field
from typing import Callable, Collection, Dict, Iterable, Mapping, NamedTuple, Optional, Set

import numpy as np

COMBINERS = ("sum", "mean", "sqrtn")


class MovingStatistics(NamedTuple):
    """The moving statistics of one BatchNorm layer, float64 (channels,) each."""

    mean: np.ndarray
    variance: np.ndarray

    @property
    def initial(self) -> bool:
        """Whether they are as TensorFlow and torch begin them: 0 and 1."""
        return not self.mean.any() and bool((self.variance == 1).all())


@dataclass(frozen=True, eq=False)
class Facts:
    """All known facts of one side; unknown ones are None or absent.

    Attributes:
        source: where the facts are from.
        optimizer: its name, as TensorFlow's ("Adagrad"); several are joined by ", ".
        settings: of the optimizer: learning_rate, epsilon, initial_accumulator_value, beta1, ...
        denominator: median of the optimizer's second-moment slot, over values that were trained: of
            Adagrad's and Ftrl's accumulators, Adam's v, RMSProp's mean square.
        epsilon_under_root: whether the optimizer adds epsilon before it takes the root.
        slots: how many variables have the optimizer's state beside them; None: not known.
        moving: BatchNorm's moving statistics by the layer's name.
        batch_norm: of BatchNorm: epsilon, momentum.
        combiners: "sum", "mean" or "sqrtn" by table; under "" for all that are not named.
        cold: by table: bool (rows,), ids whose row is all zero or was never trained.
        step: the global step that was saved; None: not known.

    Examples:
        >>> old = parity.Facts("old job", optimizer="Adagrad", settings={"learning_rate": 0.05})
        >>> new = parity.Facts("new job", optimizer="Adagrad", settings={"learning_rate": 0.5})
        >>> comparison = parity.compare(labels, baseline, -candidate)
        >>> found = parity.diagnose(comparison, baseline_model=old, candidate_model=new)
        >>> [suspect.name for suspect in found.diagnosis]
        ['learning rate']
    """

    source: str
    optimizer: Optional[str] = None
    settings: Dict[str, float] = field(default_factory=dict)
    denominator: Optional[float] = None
    epsilon_under_root: bool = False
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


def moving_statistics(
    names: Collection[str], read: Callable[[str], np.ndarray]
) -> Dict[str, MovingStatistics]:
    """The moving statistics of the layers that have both among these names, by layer."""
    mean, variance = "/moving_mean", "/moving_variance"
    layers = [name[: -len(mean)] for name in names if name.endswith(mean)]
    return {
        layer: MovingStatistics(
            *(read(layer + one).ravel().astype(float) for one in (mean, variance))
        )
        for layer in layers
        if layer + variance in names
    }


def agreed(settings: Iterable[Mapping[str, float]]) -> Dict[str, float]:
    """The settings that have one value wherever they occur."""
    by_name: Dict[str, Set[float]] = {}
    for settings_of_one in settings:
        for name, value in settings_of_one.items():
            by_name.setdefault(name, set()).add(value)
    return {name: values.pop() for name, values in by_name.items() if len(values) == 1}


def matching_table(name: str, tables: Iterable[str]) -> Optional[str]:
    """The table that corresponds to another side's table, or to a column of ids.

    That is the one of the same name; else the only one whose path contains it, or lies in it:
    `deep/user/embedding_weights` and `deep_user` both match `user`. None where none or several do.
    """
    tables = list(tables)
    if name in tables:
        return name
    flat = _flat(name)
    near = [table for table in tables if _within(flat, _flat(table)) or _within(_flat(table), flat)]
    return near[0] if len(near) == 1 else None


def _flat(name: str) -> str:
    return "_" + re.sub(r"[/.]", "_", name) + "_"


def _within(part: str, whole: str) -> bool:
    return part != "__" and part in whole
