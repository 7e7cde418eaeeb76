"""Sentences on the faults of a batch normalisation, and on why one must be left alone."""

from typing import Any, Dict, List

from graph_rewrite.batch_norm.statistics import HOPS
from graph_rewrite.batch_norm.updates import IN_A_LOOP
from graph_rewrite.edit.function_bodies import can_do_without
from graph_rewrite.graph.functions import home
from graph_rewrite.graph.ops import READ
from graph_rewrite.graph.partitions import parts, whole
from graph_rewrite.graph.passthrough import trace
from semisync.common.tensor_names import split


def finding(view, owned, names, updates, updated, in_collection, runs):
    """A sentence that the author should read, or "".

    Args:
        view, owned: the `View`, the `Owned`.
        names: (moving mean's variable, moving variance's), either may be None.
        updates: (that of the mean, that of the variance), either may be None.
        updated: the variables that the updates of any layer of the graph move.
        in_collection: whether the updates are in UPDATE_OPS.
        runs: whether anything runs them, or the graph does not train.
    """
    mean, variance = updates
    moving = _list([name for name in names if name])
    if owned.unknown:
        return ""  # `reason` reports it
    if mean is None and variance is None:
        if owned.layer.training is False:
            if set(names) & updated:
                return ""  # an inference copy of a layer that trains elsewhere in this graph
            return "nothing updates {}: training is False".format(moving)
        if not moving:
            return (
                "no moving average of its mean and variance is found: it may have nothing to "
                "normalise with at inference"
            )
        return "nothing updates {}: inference would use what they were initialised to".format(
            moving
        )
    # Batch renormalisation keeps its mean twice, and of its variance the root: `reason` reports it.
    if (mean is None or variance is None) and not any(_kept_otherwise_than_once(view, owned)):
        kept = "variance" if mean is None else "mean"
        return "only the {}'s moving average is found".format(kept)
    if not runs:
        where = "they stand in UPDATE_OPS" if in_collection else "they are not in UPDATE_OPS"
        return "nothing runs the updates of {}: {}, and no op depends on them".format(moving, where)
    return ""


def reason(view, owned, kept, sharers):
    """Why nothing of an `Owned` may be rewritten, or "".

    Args:
        view: the `View`.
        owned: the `Owned`.
        kept: [(Update, Statistic)] of its mean and of its variance, with their rates in training.
        sharers: {variable: the ops of the layers that update it}.
    """
    layer = owned.layer
    reasons = [update.left_alone for update, _ in kept]
    reasons += [statistic.reason for statistic in layer.main.statistics]
    reasons += [statistic.reason for _, statistic in kept]
    reasons.append(layer.reason)
    if owned.unknown:
        reasons.append(
            "'{}' makes '{}' of its statistics in a way that is not known".format(
                owned.unknown.op, owned.unknown.variable
            )
        )
    if view.guards.looped(layer.main.op) and not kept:
        reasons.append(IN_A_LOOP)
    reasons += _kept_otherwise_than_once(view, owned)
    reasons.append(_partition(view, [update.variable for update, _ in kept]))
    for name in [whole(view.nodes, update.variable) for update, _ in kept]:
        others = [op for op in sharers[name] if op != layer.main.op]
        if others:
            reasons.append("'{}' updates '{}' too".format(others[0], name))
    rates = {str(update.rate) for update, _ in kept}
    if len(rates) > 1 and all(isinstance(update.rate, float) for update, _ in kept):
        reasons.append("mean and variance move at different rates, {}".format(_list(sorted(rates))))
    if not layer.main.over_batch:
        reasons.append("its statistics are not those of a whole batch")
    return next(filter(None, reasons), "")


def normalises_late(view, main, updates):
    """Why the updates of a Normalisation must come before it, or ""."""
    # A layer that takes a batch's statistics does not normalise with the moving ones.
    ops = {update.op for update in updates if not main.statistics}
    for tensor in (main.mean, main.variance) if ops else ():
        for passed in trace(view.nodes, tensor, HOPS | READ):
            node = view.nodes.maker(passed)
            above = set(view.nodes.control_inputs(node))
            # Updates are often waited for by way of a group.
            for name in [name for name in above if view.nodes[name].op == "NoOp"]:
                above.update(view.nodes.control_inputs(view.nodes[name]))
            if ops & (above | {node.name}):
                return "it normalises with its moving statistics after the batch has moved them"
    return ""


def out_of_reach(view, layer, updates, statistics):
    """Why nothing outside of a branch or a function can replace the updates, or "".

    Args:
        statistics: the tensors that the updates take.
    """
    for update in updates:
        for op in update.ops:
            if not can_do_without(view.nodes, op):
                return "its update '{}' lies inside a function that is an op itself".format(op)
        if home(str(update.rate)):
            return "the rate of its update '{}' is made inside a function".format(update.op)
    needed = [("statistic", tensor) for tensor in statistics] + [("input", layer.main.x)]
    if isinstance(layer.training, str):
        needed.append(("predicate", layer.training))
    for role, tensor in needed if updates else ():
        if view.guards.looped(split(tensor)[0]):
            return "its {} '{}' is made in a loop".format(role, tensor)
        if view.guards.of(tensor):
            return "its {} '{}' is there in one branch only".format(role, tensor)
        if view.guards.inside(tensor):
            return "its {} '{}' is made inside a function".format(role, tensor)
    return ""


def _kept_otherwise_than_once(view, owned):
    """A sentence per statistic that has several averages, or none in some parts of a variable."""
    for kind, kept in (("mean", owned.mean), ("variance", owned.variance)):
        variables = [update.variable for update, _ in kept]
        names = sorted({whole(view.nodes, name) for name in variables})
        expected = [part for name in names for part in parts(view.nodes, name)]
        if len(names) > 1 or len(variables) > len(expected):
            yield "its {} is kept {} times, in {}".format(kind, len(variables), _list(names))
        elif sorted(variables) != sorted(expected):
            yield "only {} is updated of {}".format(_list(variables), _list(expected))


def _partition(view, names):
    """Why the variables of one layer cannot be cut out of its statistics, or ""."""
    shapes: Dict[str, List[Any]] = {}
    for name in names:
        if whole(view.nodes, name) != name:
            shape = [dim.size for dim in view.nodes[name].attr["shape"].shape.dim]
            shapes.setdefault(whole(view.nodes, name), []).append(shape)
    for name, cut in shapes.items():
        if any(sum(size != 1 for size in shape) > 1 for shape in cut):
            return "'{}' is partitioned, and has several axes".format(name)
        if cut != list(shapes.values())[0]:
            return "{} are partitioned in different ways".format(_list(shapes))
    return ""


def _list(names):
    return " and ".join("'{}'".format(name) for name in names)
