"""Which updates belong to which layer.

A layer owns the updates that take its batch's statistics. One that reads no statistics owns those
that move the variables it reads towards statistics of no other layer.
"""

import collections
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from graph_rewrite.batch_norm.found import Update
from graph_rewrite.batch_norm.layers import Layer, layers
from graph_rewrite.batch_norm.normalisations import normalisations
from graph_rewrite.batch_norm.statistics import MEAN, VARIANCE, Statistic, readings
from graph_rewrite.graph.partitions import whole
from graph_rewrite.patterns.arithmetic import handed
from graph_rewrite.patterns.language import match, op
from semisync.common.tensor_names import split

_MEAN_OF_GROUPS = handed(op("Mean", "statistic", "axes"))

Kept = List[Tuple[Update, Statistic]]


class Owned(NamedTuple):
    """A Layer and its updates.

    Attributes:
        layer: the `Layer`.
        mean, variance: the updates that keep its mean, and its variance, with their statistics.
        unknown: an update of unknown form that takes its statistics, on a variable that it reads;
            or None.
        variables: all that the updates move, a list.
    """

    layer: Layer
    mean: Kept
    variance: Kept
    unknown: Optional[Update]
    variables: List[str]


def own(view, updates):
    """An Owned per layer of a `View`, given the view's updates."""
    every = layers(view, normalisations(view))
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
    """See `Owned`; `others` are the updates that keep no layer's statistics."""
    nodes, statistics = view.nodes, layer.main.statistics
    read = read_by(layer, MEAN) | read_by(layer, VARIANCE) if statistics else set()
    makers = {split(statistic.key)[0] for statistic in statistics}
    for update in others:
        if whole(nodes, update.variable) in read:
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
        first: Dict[int, Any] = {}
        for (place, _), update, statistic in sorted(entries, key=lambda entry: entry[0]):
            first.setdefault(place, (update, statistic))
        return list(first.values())
