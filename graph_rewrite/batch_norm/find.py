"""Finds the batch normalisations of a graph, and the updates that are none of theirs.

1. Every update of a variable is read (`graph_rewrite.batch_norm.updates`), and traced back to the
   statistics of a batch that it may take (`graph_rewrite.batch_norm.statistics`).
2. Every normalisation is found on its own (`graph_rewrite.batch_norm.normalisations`), and those
   that are one layer are put together (`graph_rewrite.batch_norm.layers`).
3. A layer owns the updates that take its batch's statistics. One that reads no statistics owns
   those that move the variables it reads towards statistics of nobody else.
4. What remains are normalisations that nothing updates, worth a finding, and updates of something
   else, which `find_updates` returns.
"""

import itertools
from collections import defaultdict, namedtuple
from typing import Any, Dict, List

from graph_rewrite.batch_norm import findings
from graph_rewrite.batch_norm.layers import layers
from graph_rewrite.batch_norm.model import BatchNorm
from graph_rewrite.batch_norm.momentum import momentum, rate
from graph_rewrite.batch_norm.normalisations import normalisations
from graph_rewrite.batch_norm.statistics import HOPS, MEAN, OTHER, VARIANCE, readings
from graph_rewrite.batch_norm.updates import all_updates, deviation, partners
from graph_rewrite.edit.function_bodies import can_do_without
from graph_rewrite.graph.collector import uncollected
from graph_rewrite.graph.functions import home
from graph_rewrite.graph.index import split
from graph_rewrite.graph.partitions import whole
from graph_rewrite.graph.passthrough import READ, trace
from graph_rewrite.graph.view import View
from graph_rewrite.patterns.fused import FUSED

# A Layer and what is its own: [(Update, Statistic)] of the mean, and of the variance; `others`,
# the Statistics that further updates keep of the same batch; `derived`, the variable of a variance
# that is made from one of these, or None; `variables`, all that are moved.
Owned = namedtuple("Owned", "layer mean variance others derived variables")


@uncollected
def find_batch_norms(graph):
    """The batch normalisations of a graph, a list of `BatchNorm` in its order.

    Args:
      graph: a tf.Graph, GraphDef or MetaGraphDef.
    """
    return of_view(View(graph))


def of_view(view):
    """`find_batch_norms` of a `View`."""
    found = _own(view, all_updates(view))
    sharing = _sharing(view, found)
    return [_batch_norm(view, owned, sharing) for owned in found]


@uncollected
def find_updates(graph):
    """The updates of variables that are no statistic of a batch normalisation: list of `Update`.

    Moving averages of features, averages of variables, counters, whatever is assigned: see
    `graph_rewrite.batch_norm.updates` for what is none.

    Args:
      graph: a tf.Graph, GraphDef or MetaGraphDef.
    """
    view = View(graph)
    updates = all_updates(view)
    taken = {variable for owned in _own(view, updates) for variable in owned.variables}
    return [update for update in updates if update.variable not in taken]


def _sharing(view, found):
    """{variable: the ops of the layers that move it}, a partitioned one by what its parts share.

    Of several layers those count alone whose updates an exported graph runs: the first of several
    towers, the one of a Keras model's two calls, the original of what is computed again.
    """
    owners, sharing = defaultdict(list), defaultdict(list)
    for owned in found:
        for variable in {whole(view.nodes, each) for each in owned.variables}:
            owners[variable].append(owned)
    for variable, several in owners.items():
        running = [each for each in several if len(several) == 1 or _runs(view, each)]
        sharing[variable] = [each.layer.main.op for each in running or several]
    return sharing


def _runs(view, owned):
    kept = owned.mean + owned.variance
    return view.whole and any(view.needed(update.op) for update, _ in kept)


def _own(view, updates):
    """An Owned for every layer."""
    found = layers(view, normalisations(view))
    known = {statistic.key for layer in found for statistic in layer.main.statistics}
    debiased = {partners(view, each)[0]: each for each in updates if each.kind == "debiased"}
    traced = Traced(view, [each for each in updates if each.kind == "average"])
    derived = {deviation(view, each): each.variable for each in updates if each.kind == "assign"}
    owned = [_owned(view, layer, traced, known, debiased, derived) for layer in found]
    # Of a layer, an instance or a group, unless something is kept of it.
    return [each for each in owned if each.layer.main.over_batch or each.variables]


def _owned(view, layer, traced, known, debiased, derived):
    """The Owned of one layer.

    Args:
      traced: a `Traced`.
      known: the keys of the statistics that any layer takes.
      debiased: {a biased average's variable: the Update that corrects it}.
      derived: {a standard deviation's variable: that of the variance that is made from it}.
    """
    kept: Dict[str, List[Any]] = {MEAN: [], VARIANCE: [], OTHER: []}
    variables = []
    for update, statistic in traced.of(layer.main, known):
        variables.append(update.variable)
        corrected = debiased.get(update.variable)
        if corrected:
            variables += [corrected.variable, partners(view, corrected)[1]]
            update = corrected._replace(source=update.source)
        kept[statistic.kind].append((update, statistic))
    variance = next((derived[name] for name in variables if name in derived), None)
    variables += [variance] if variance else []
    others = [statistic for _, statistic in kept[OTHER]]
    return Owned(layer, kept[MEAN], kept[VARIANCE], others, variance, variables)


class Traced:
    """Moving averages, each with the statistics that its source may be read as."""

    def __init__(self, view, updates):
        self._by_key, self._by_variable = defaultdict(list), defaultdict(list)
        for place, update in enumerate(updates):
            for rank, statistic in enumerate(readings(view, update.source)):
                entry = (place, rank), update, statistic
                self._by_key[statistic.key].append(entry)
                self._by_variable[whole(view.nodes, update.variable)].append(entry)

    def of(self, normalisation, known):
        """[(Update, Statistic)] of those that are a Normalisation's own, in the graph's order.

        Args:
          normalisation: one that trains, or none.
          known: the keys of the statistics that any normalisation takes.
        """
        own = {statistic.key for statistic in normalisation.statistics}
        entries = [entry for key in own for entry in self._by_key.get(key, ())]
        if not own:
            for kind, names in zip((MEAN, VARIANCE), normalisation.moving):
                moved = [entry for name in names for entry in self._by_variable.get(name, ())]
                entries += [e for e in moved if e[2].kind == kind and e[2].key not in known]
        found: Dict[int, Any] = {}
        for (place, _), update, statistic in sorted(entries, key=lambda entry: entry[0]):
            found.setdefault(place, (update, statistic))
        return list(found.values())


def _batch_norm(view, owned, sharing):
    layer, main = owned.layer, owned.layer.main
    kept = [
        (update._replace(rate=rate(view, update, layer.guard)), statistic)
        for update, statistic in _chosen(view, owned, MEAN) + _chosen(view, owned, VARIANCE)
    ]
    by_kind = {statistic.kind: (update, statistic) for update, statistic in kept}
    updates = [update for update, _ in kept]
    names = [_moving(view, owned, kind, by_kind) for kind in (MEAN, VARIANCE)]
    in_collection = bool(updates) and all(_collected(view, each) for each in updates)
    idle = any(main.op not in sharing[name] for name in names if name in sharing)
    statistic = by_kind.get(VARIANCE, (None, _first(main.statistics, VARIANCE)))[1]
    return BatchNorm(
        name=_scope(main, names),
        kind=main.kind,
        op=main.op,
        input=main.x,
        gamma=main.gamma,
        beta=main.beta,
        moving_mean=names[0],
        moving_variance=names[1],
        momentum=momentum(view, updates[0].rate) if updates else None,
        epsilon=main.epsilon,
        axis=main.axis,
        training=layer.training,
        mean=_top(view, main, MEAN, by_kind),
        variance=_top(view, main, VARIANCE, by_kind),
        bessel=statistic is not None and view.nodes.maker(statistic.tensor).op in FUSED,
        updates=updates,
        dependents=_each_once([update.dependents for update in updates]),
        in_collection=in_collection,
        finding=findings.finding(
            layer,
            names,
            [by_kind.get(kind, (None,))[0] for kind in (MEAN, VARIANCE)],
            set(sharing),
            in_collection,
            idle or any(view.needed(update.op) for update in updates),
            view.trains,
        ),
        left_alone=findings.reason(view, owned, kept, sharing)
        or _read_late(view, owned, updates)
        or _hidden(view, owned, updates, [_top(view, main, kind, by_kind) for kind in by_kind]),
    )


def _each_once(several):
    """The names in several tuples, a tuple; most often these are one, of thousands."""
    if several and all(each is several[0] for each in several):
        return several[0]
    return tuple(dict.fromkeys(itertools.chain(*several)))


def _chosen(view, owned, kind):
    """[(Update, Statistic)] of one variable: of several one that the layer reads, then the last.

    There is one of each part of a partitioned variable. Where there are several variables the layer
    is left alone. The last, since batch renormalisation keeps its own before the moving average.
    """
    kept = owned.mean if kind == MEAN else owned.variance
    names = [whole(view.nodes, update.variable) for update, _ in kept]
    best = sorted(names, key=lambda name: name in _read(owned, kind))[-1:]
    return [pair for pair, name in zip(kept, names) if name in best]


def _read(owned, kind):
    """The moving variables that a layer reads, those at inference if it can tell, a set."""
    main, other, number = owned.layer.main, owned.layer.other, (MEAN, VARIANCE).index(kind)
    return (other.moving[number] if other else set()) or main.moving[number]


def _hidden(view, owned, updates, statistics):
    """Why nothing outside of a branch or a function can do what the updates do, or ""."""
    for update in updates:
        if not can_do_without(view.nodes, update.op):
            return "its update '{}' lies inside a function that is an op itself".format(update.op)
        if home(str(update.rate)):
            return "the rate of its update '{}' is made inside a function".format(update.op)
    needed = [("statistic", each) for each in statistics] + [("input", owned.layer.main.x)]
    if isinstance(owned.layer.training, str):
        needed.append(("predicate", owned.layer.training))
    for what, tensor in needed if updates else ():
        if view.guards.looped(split(tensor)[0]):
            return "its {} '{}' is made in a loop".format(what, tensor)
        if view.guards.of(tensor):
            return "its {} '{}' is there in one branch only".format(what, tensor)
        if view.guards.inside(tensor):
            return "its {} '{}' is made inside a function".format(what, tensor)
    return ""


def _read_late(view, owned, updates):
    """Why its updates must come before the layer itself, or ""."""
    main = owned.layer.main
    ops = {update.op for update in updates if not main.statistics}
    for tensor in (main.mean, main.variance) if ops else ():
        for each in trace(view.nodes, tensor, HOPS | READ):
            node = view.nodes.maker(each)
            above = set(view.nodes.control_inputs(node))
            for name in [name for name in above if view.nodes[name].op == "NoOp"]:
                above.update(view.nodes.control_inputs(view.nodes[name]))
            if ops & (above | {node.name}):
                return "it normalises with its moving statistics after the batch has moved them"
    return ""


def _moving(view, owned, kind, by_kind):
    """The variable that keeps the mean or the variance, or None."""
    if kind in by_kind:
        return whole(view.nodes, by_kind[kind][0].variable)
    names = sorted(_read(owned, kind))
    return names[0] if names else owned.derived if kind == VARIANCE else None


def _top(view, main, kind, by_kind):
    """The tensor at the top level of the statistic that is kept, or would be; or None."""
    if kind in by_kind:
        return view.guards.lift(by_kind[kind][0].source)
    statistic = _first(main.statistics, kind)
    return view.guards.lift(statistic.tensor) if statistic else None


def _first(statistics, kind):
    return next((each for each in statistics if each.kind == kind), None)


def _collected(view, update):
    names = view.update_ops or ()
    return bool(names) and any(each in names for each in view.handed_on(update.op))


def _scope(main, names):
    """The scope that its variables share, else that of the op."""
    paths = [name.split("/")[:-1] for name in [main.gamma, main.beta, *names] if name]
    shared = []
    for level in zip(*paths):
        if len(set(level)) > 1:
            break
        shared.append(level[0])
    return "/".join(shared) or split(main.op)[0].rpartition("/")[0] or main.op
