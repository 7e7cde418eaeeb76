"""Batch normalisations as their author wrote them: when one trains, which two are one layer, and
which updates belong to each.

1. A normalisation that takes statistics of a batch trains. Where a condition chooses these or the
   moving ones, its predicate is the `training`; if both branches take a batch's, it always trains.
2. Where there are two of the same x, gamma and beta, each in a branch of one condition, the one
   that trains represents both, and the predicate of the condition is its `training`.
3. One that lies in a branch by itself trains by that branch's predicate; outside of all branches it
   always trains.
4. A layer owns the updates that take its batch's statistics. One that reads no statistics owns
   those that move the variables it reads towards statistics of no other layer.
"""

import collections
from typing import Any, Dict, List, NamedTuple, Optional, Set, Tuple

from graph_rewrite.batch_norm.found import Update
from graph_rewrite.batch_norm.normalisations import Normalisation, normalisations
from graph_rewrite.batch_norm.statistics import MEAN, VARIANCE, Statistic, readings
from graph_rewrite.graph.control_flow import Guard, opposite
from graph_rewrite.graph.partitions import whole
from graph_rewrite.patterns.arithmetic import handed
from graph_rewrite.patterns.language import match, op
from semisync.common.tensor_names import split

_MEAN_OF_GROUPS = handed(op("Mean", "statistic", "axes"))
Kept = List[Tuple[Update, Statistic]]


class _Layer(NamedTuple):
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


def _layers(view, normalisations):
    """A Layer per Normalisation of a list, or per two of them, in their order."""
    # Those that train come first, whatever their order in the graph: they choose their partners.
    made: Dict[str, _Layer] = {}
    paired: Set[str] = set()
    for main in normalisations:
        if main.statistics:
            other, guard = _other(view, main, normalisations, paired)
            if other:
                paired.add(other.op)
            made[main.op] = _layer(view, main, other, guard)
    for main in normalisations:
        if main.op not in made and main.op not in paired:
            made[main.op] = _Layer(main, None, False, None, "")
    return [made[main.op] for main in normalisations if main.op in made]


def _layer(view, main, other, guard):
    chosen = frozenset().union(*[statistic.guards for statistic in main.statistics])
    guards = chosen or ([guard] if guard else _guards(view, main))
    if not guards:
        return _Layer(main, other, True, None, "")
    names = sorted({guard.predicate for guard in guards})
    # Both branches take the batch's statistics: it trains whatever the predicate.
    if len(names) == 1 and all(opposite(guard) in guards for guard in guards):
        return _Layer(main, other, True, None, "")
    guard = sorted(guards, key=str)[0]  # of a set: any one, but the same in every run
    reason = ""
    if len(guards) > 1:
        reason = _NESTED.format(", ".join("'{}'".format(name) for name in names))
    elif guard.value is not True:
        reason = _INVERTED.format(guard.predicate)
    return _Layer(main, other, guard.predicate, guard, reason)


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


class Owned(NamedTuple):
    """A Layer and its updates.

    Attributes:
        layer: the `_Layer`.
        mean, variance: the updates that keep its mean, and its variance, with their statistics.
        unknown: an update of unknown form that takes its statistics, on a variable that it reads;
            or None.
        variables: all that the updates move, a list.
    """

    layer: _Layer
    mean: Kept
    variance: Kept
    unknown: Optional[Update]
    variables: List[str]


def own(view, updates):
    """An Owned per layer of a `View`, given the view's updates."""
    every = _layers(view, normalisations(view))
    known = {statistic.key for layer in every for statistic in layer.main.statistics}
    traced = _Traced(view, [update for update in updates if update.kind == "average"])
    kept = [traced.of(layer.main, known) for layer in every]
    taken = {update.op for pairs in kept for update, _ in pairs}
    others = [update for update in updates if update.op not in taken]
    every_owned = [_owned(view, layer, pairs, others) for layer, pairs in zip(every, kept)]
    # Layer, instance and group normalisations keep no statistics; one that does counts.
    return [owned for owned in every_owned if owned.layer.main.over_batch or owned.variables]


def read_by(layer, kind):
    """The moving variables that a Layer reads, at inference where that is known, a set."""
    main, other, number = layer.main, layer.other, (MEAN, VARIANCE).index(kind)
    return (other.moving[number] if other else set()) or main.moving[number]


def sharing(view, every):
    """{variable: the ops of the layers that move it}, of every `Owned`; partitioned ones whole.

    Of several layers only those count whose updates an exported graph runs: the first of several
    towers, one of a Keras model's two calls, the original of a recomputed layer.
    """
    owners, sharers = collections.defaultdict(list), collections.defaultdict(list)
    for owned in every:
        for variable in {whole(view.nodes, name) for name in owned.variables}:
            owners[variable].append(owned)
    for variable, several in owners.items():
        running = [owned for owned in several if len(several) == 1 or _runs(view, owned)]
        sharers[variable] = [owned.layer.main.op for owned in running or several]
    return sharers


def _runs(view, owned):
    kept = owned.mean + owned.variance
    return view.whole and any(view.needed(update.op) for update, _ in kept)


def _owned(view, layer, kept, others):
    unknown = _unknown(view, layer, others) or (None if kept else _of_groups(view, layer, others))
    variables = [update.variable for update, _ in kept]
    return Owned(
        layer=layer,
        mean=[pair for pair in kept if pair[1].kind == MEAN],
        variance=[pair for pair in kept if pair[1].kind == VARIANCE],
        unknown=unknown,
        variables=variables + ([unknown.variable] if unknown else []),
    )


def _unknown(view, layer, others):
    """The `unknown` of an `Owned`; `others` are the updates that keep no layer's statistics."""
    nodes, statistics = view.nodes, layer.main.statistics
    read = read_by(layer, MEAN) | read_by(layer, VARIANCE) if statistics else set()
    makers = {split(statistic.key)[0] for statistic in statistics}
    for update in others:
        if whole(nodes, update.variable) in read:
            # By data alone: an update may wait for ops whose values it does not take.
            above = nodes.reachable([split(update.source)[0]], nodes.makers)
            if not makers.isdisjoint(above):
                return update
    return None


def _of_groups(view, layer, others):
    """An update that averages statistics of groups of rows, such as virtual batches; or None."""
    tensors = {statistic.tensor for statistic in layer.main.statistics}
    for update in others if tensors else ():
        grouped = update.kind == "average" and match(_MEAN_OF_GROUPS, view.nodes, update.source)
        if grouped and grouped["statistic"] in tensors:
            return update
    return None


class _Traced:
    """Moving averages, each with the statistics that its source may be read as."""

    def __init__(self, view, updates):
        self._by_key: Dict[str, List[Any]] = collections.defaultdict(list)
        self._by_variable: Dict[str, List[Any]] = collections.defaultdict(list)
        for place, update in enumerate(updates):
            for rank, statistic in enumerate(readings(view, update.source)):
                entry = (place, rank), update, statistic
                self._by_key[statistic.key].append(entry)
                self._by_variable[whole(view.nodes, update.variable)].append(entry)

    def of(self, normalisation, known):
        """[(Update, Statistic)] of the averages of a Normalisation's statistics, in graph order.

        Args:
            normalisation: one that trains, or none.
            known: the keys of the statistics that any normalisation takes.
        """
        keys = {statistic.key for statistic in normalisation.statistics}
        entries = [entry for key in keys for entry in self._by_key.get(key, ())]
        if not keys:
            for kind, names in zip((MEAN, VARIANCE), normalisation.moving):
                moved = [entry for name in names for entry in self._by_variable.get(name, ())]
                # Without statistics of its own it may own only averages that no layer claims.
                entries += [e for e in moved if e[2].kind == kind and e[2].key not in known]
        # Where the source may be read as several statistics, the first reading counts.
        first: Dict[int, Any] = {}
        for (place, _), update, statistic in sorted(entries, key=lambda entry: entry[0]):
            first.setdefault(place, (update, statistic))
        return list(first.values())
