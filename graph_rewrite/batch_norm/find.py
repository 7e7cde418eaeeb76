"""Finds the batch normalisations of a graph, and the updates that belong to none of them.

1. Every update of a variable is read (`batch_norm.updates`), and traced back to the statistics of a
   batch that it may take (`batch_norm.statistics`).
2. Every normalisation is found on its own (`batch_norm.normalisations`), and those that are one
   layer are put together (`batch_norm.layers`).
3. Each layer gets the updates that belong to it.
4. There remain normalisations that nothing updates, which get a finding (`batch_norm.findings`),
   and updates of other variables, which `find_updates` returns.
"""

import itertools

from graph_rewrite.batch_norm import findings
from graph_rewrite.batch_norm.found import BatchNorm
from graph_rewrite.batch_norm.layers import own, read_by, sharing
from graph_rewrite.batch_norm.statistics import MEAN, VARIANCE
from graph_rewrite.batch_norm.updates import all_updates, momentum, rate_in_training
from graph_rewrite.graph.ops import FUSED
from graph_rewrite.graph.partitions import whole
from graph_rewrite.graph.view import View
from semisync.common.tensor_names import split


def find_batch_norms(graph):
    """The batch normalisations of a graph, in the graph's order.

    Args:
        graph: a tf.Graph, GraphDef or MetaGraphDef.

    Returns:
        A list of `BatchNorm`.

    Examples:
        >>> x = tf.placeholder(tf.float32, [None, 8])
        >>> with tf.variable_scope("bn"):
        ...     names = ("moving_mean", "moving_variance")
        ...     moving = [tf.get_variable(name, [8], trainable=False) for name in names]
        ...     mean, variance = tf.nn.moments(x, [0])
        ...     y = tf.nn.batch_normalization(x, mean, variance, None, None, 1e-3)
        ...     for old, new in zip(moving, (mean, variance)):
        ...         update = tf.assign_sub(old, 0.1 * (old - new))
        >>> [found] = graph_rewrite.find_batch_norms(tf.get_default_graph())
        >>> found.name, found.kind, found.moving_mean
        ('bn', 'unfused', 'bn/moving_mean')
    """
    return of_view(View(graph))


def of_view(view):
    """`find_batch_norms` of a `View`."""
    every = own(view, all_updates(view))
    # Known for all layers before the first is described: two may move one variable.
    sharers = sharing(view, every)
    return [_batch_norm(view, owned, sharers) for owned in every]


def find_updates(graph):
    """The updates of variables that are not a statistic of a batch normalisation.

    Moving averages of features, averages of variables, counters, any assignment.
    `graph_rewrite.batch_norm.updates` says what does not count as one.

    Args:
        graph: a tf.Graph, GraphDef or MetaGraphDef.

    Returns:
        A list of `Update`.

    Examples:
        >>> seen = tf.get_variable("seen", initializer=0.0, trainable=False)
        >>> count = tf.assign_add(seen, 1.0, name="count")
        >>> [update] = graph_rewrite.find_updates(tf.get_default_graph())
        >>> update.variable, update.kind, update.op
        ('seen', 'add', 'count')
    """
    view = View(graph)
    updates = all_updates(view)
    taken = {variable for owned in own(view, updates) for variable in owned.variables}
    return [update for update in updates if update.variable not in taken]


def _batch_norm(view, owned, sharers):
    layer, main = owned.layer, owned.layer.main
    kept = [
        (update._replace(rate=rate_in_training(view, update, layer.guard)), statistic)
        for update, statistic in _chosen(view, owned, MEAN) + _chosen(view, owned, VARIANCE)
    ]
    by_kind = {statistic.kind: (update, statistic) for update, statistic in kept}
    updates = [update for update, _ in kept]
    names = [_moving(view, owned, kind, by_kind) for kind in (MEAN, VARIANCE)]
    variance = by_kind.get(VARIANCE, (None, _first(main.statistics, VARIANCE)))[1]
    tops = {kind: _top(view, main, kind, by_kind) for kind in (MEAN, VARIANCE)}
    in_collection = bool(updates) and all(_collected(view, update) for update in updates)
    # The layer's op is no sharer where only another copy's updates run, such as a first tower's.
    unused = any(main.op not in sharers[name] for name in names if name in sharers)
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
        mean=tops[MEAN],
        variance=tops[VARIANCE],
        bessel=variance is not None and view.nodes.maker(variance.tensor).op in FUSED,
        updates=updates,
        dependents=_each_once([update.dependents for update in updates]),
        in_collection=in_collection,
        finding=findings.finding(
            view,
            owned,
            names=names,
            updates=[by_kind.get(kind, (None,))[0] for kind in (MEAN, VARIANCE)],
            updated=set(sharers),
            in_collection=in_collection,
            runs=not view.trains or unused or any(view.needed(update.op) for update in updates),
        ),
        left_alone=findings.reason(view, owned, kept, sharers)
        or findings.normalises_late(view, main, updates)
        or findings.out_of_reach(view, layer, updates, [tops[kind] for kind in by_kind]),
    )


def _each_once(several):
    """The distinct names in several tuples, a tuple."""
    # Nodes for which the same ones wait share one tuple, which may hold thousands of names.
    if several and all(names is several[0] for names in several):
        return several[0]
    return tuple(dict.fromkeys(itertools.chain(*several)))


def _chosen(view, owned, kind):
    """[(Update, Statistic)] of one variable: of several, one that the layer reads, else the last.

    There is one per part of a partitioned variable. Where there are several variables the layer is
    left alone. The last one, since batch renormalisation moves its own variables before the moving
    average.
    """
    kept = owned.mean if kind == MEAN else owned.variance
    names = [whole(view.nodes, update.variable) for update, _ in kept]
    best = sorted(names, key=lambda name: name in read_by(owned.layer, kind))[-1:]
    return [pair for pair, name in zip(kept, names) if name in best]


def _moving(view, owned, kind, by_kind):
    """The variable that keeps the mean or the variance, or None."""
    if kind in by_kind:
        return whole(view.nodes, by_kind[kind][0].variable)
    return min(read_by(owned.layer, kind), default=None)


def _top(view, main, kind, by_kind):
    """The top-level tensor of the statistic that is averaged, or would be; or None."""
    if kind in by_kind:
        return view.guards.lift(by_kind[kind][0].source)
    statistic = _first(main.statistics, kind)
    return view.guards.lift(statistic.tensor) if statistic else None


def _first(statistics, kind):
    return next((statistic for statistic in statistics if statistic.kind == kind), None)


def _collected(view, update):
    names = view.update_ops or ()
    return bool(names) and any(name in names for name in view.handed_on(update.op))


def _scope(main, names):
    """The scope that a layer's variables share; without one, the scope of its op."""
    paths = [name.split("/")[:-1] for name in [main.gamma, main.beta, *names] if name]
    shared = []
    for level in zip(*paths):
        if len(set(level)) > 1:
            break
        shared.append(level[0])
    return "/".join(shared) or split(main.op)[0].rpartition("/")[0] or main.op
