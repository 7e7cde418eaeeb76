"""Moving averages that a checkpoint stores under the names of their variables.

tf.train.ExponentialMovingAverage keeps the average of a variable V in a variable
`V/ExponentialMovingAverage`. The swapping_saver of contrib's MovingAverageOptimizer stores each
under the other's name, so that a plain Saver restores the averages for evaluation. Slots keep their
names, `V/Adagrad`, and belong to the trained weights, now `V/ExponentialMovingAverage`.
Source: tensorflow/contrib/opt/python/training/moving_average_optimizer.py
"""

from __future__ import annotations

from typing import Container, Dict, Iterable, List, Mapping

from migrate.graph.lookups import Saved

_LEAF = "ExponentialMovingAverage"


def swapped_averages(saved: Mapping[str, Saved]) -> Dict[str, str]:
    """Name in the checkpoint of each average that is stored as its variable -> the weights' name.

    Args:
        saved: variable nodes, whose names are never swapped, with where they are stored.
    """
    swapped = {}
    for node, average in saved.items():
        owner, _, leaf = node.rpartition("/")
        if owner in saved and saved[owner].name == f"{average.name}/{leaf}":
            swapped[average.name] = saved[owner].name
    return swapped


def swapped_note(swapped: Mapping[str, str]) -> str:
    """The note about averages that are swapped according to the MetaGraph."""
    weights = ", ".join(f"{name} in {stored}" for name, stored in sorted(swapped.items()))
    return (
        "a swapping_saver stored moving averages under the names of the variables, and the weights "
        f"that are trained, to which the slots belong, under those of the averages: {weights}"
    )


def unknown_notes(names: Container[str], owners: Iterable[str]) -> List[str]:
    """Notes on variables with slots, which only a MetaGraph can distinguish from their averages."""
    averaged = sorted(name for name in owners if f"{name}/{_LEAF}" in names)
    if not averaged:
        return []
    return [
        f"the slots of {', '.join(averaged)} belong to the weights, and only a MetaGraph tells "
        f"whether they or their averages are in .../{_LEAF}, where a swapping_saver puts the "
        "weights; give --meta FILE if it wrote this"
    ]
