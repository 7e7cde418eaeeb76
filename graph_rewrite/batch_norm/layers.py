"""A batch normalisation as its author wrote it: when it trains, and which two of them are one.

1. A normalisation that takes statistics of a batch trains. Where a condition chooses these or the
   moving ones, its predicate is the `training`; if both branches take a batch's, it always trains.
2. Where there are two of the same x, gamma and beta, each in a branch of one condition, the one
   that trains represents both, and the predicate of the condition is its `training`.
3. One that lies in a branch by itself trains by that branch's predicate; outside of all branches it
   always trains.
"""

from typing import Any, Dict, NamedTuple, Optional, Set

from graph_rewrite.batch_norm.normalisations import Normalisation
from graph_rewrite.graph.control_flow import Guard, opposite


class Layer(NamedTuple):
    """One or two Normalisations that are one layer.

    Attributes:
        main: the Normalisation that trains, or the only one.
        other: that of the other branch, or None.
        training: as in BatchNorm.
        guard: the branch in which it trains, or None.
        reason: why nothing may be rewritten, or "".
    """

    main: Normalisation
    other: Optional[Normalisation]
    training: Any
    guard: Optional[Guard]
    reason: str


_NESTED = "whether it trains depends on several conditions: {}"
_INVERTED = "it trains where '{}' is false, and only a predicate that is true in training will do"


def layers(view, normalisations):
    """A Layer per Normalisation of a list, or per two of them, in their order."""
    made: Dict[str, Layer] = {}
    paired: Set[str] = set()
    for main in normalisations:
        if main.statistics:
            other, guard = _other(view, main, normalisations, paired)
            if other:
                paired.add(other.op)
            made[main.op] = _layer(view, main, other, guard)
    for main in normalisations:
        if main.op not in made and main.op not in paired:
            made[main.op] = Layer(main, None, False, None, "")
    return [made[main.op] for main in normalisations if main.op in made]


def _layer(view, main, other, guard):
    chosen = frozenset().union(*[statistic.guards for statistic in main.statistics])
    guards = chosen or ([guard] if guard else _guards(view, main))
    if not guards:
        return Layer(main, other, True, None, "")
    names = sorted({guard.predicate for guard in guards})
    # Both branches take the batch's statistics: it trains whatever the predicate.
    if len(names) == 1 and all(opposite(guard) in guards for guard in guards):
        return Layer(main, other, True, None, "")
    guard = sorted(guards, key=str)[0]
    reason = ""
    if len(guards) > 1:
        reason = _NESTED.format(", ".join("'{}'".format(name) for name in names))
    elif guard.value is not True:
        reason = _INVERTED.format(guard.predicate)
    return Layer(main, other, guard.predicate, guard, reason)


def _other(view, main, normalisations, paired):
    """(the Normalisation of the other branch, the guard of `main`), or (None, None)."""
    for guard in _guards(view, main):
        for other in normalisations:
            free = not other.statistics and other.op not in paired
            alike = (other.x, other.gamma, other.beta) == (main.x, main.gamma, main.beta)
            if free and alike and opposite(guard) in _guards(view, other):
                return other, guard
    return None, None


def _guards(view, normalisation):
    return view.guards.branches("^" + normalisation.op)
