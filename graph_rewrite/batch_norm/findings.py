"""What is wrong with a batch normalisation, and why one must be left alone: a sentence each."""

from typing import Any, Dict, List

from graph_rewrite.batch_norm.updates import IN_A_LOOP
from graph_rewrite.graph.partitions import parts, whole


def finding(layer, names, updates, updated, in_collection, depended, trains):
    """What the author should know, or "".

    Args:
      layer: a `Layer`.
      names: (moving mean's variable, moving variance's), either may be None.
      updates: (that of the mean, that of the variance), either may be None.
      updated: the variables that the updates of any layer of the graph move.
      in_collection, depended: whether the updates stand in UPDATE_OPS, whether anything needs them.
      trains: whether the graph trains at all.
    """
    mean, variance = updates
    moving = _list([name for name in names if name])
    if mean is None and variance is None:
        if layer.training is False:
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
    if mean is None or variance is None:
        one = "variance" if mean is None else "mean"
        return "only the {}'s moving average is found".format(one)
    if trains and not depended:
        where = "they stand in UPDATE_OPS" if in_collection else "they are not in UPDATE_OPS"
        return "nothing runs the updates of {}: {}, and no op depends on them".format(moving, where)
    return ""


def reason(view, owned, kept, sharing):
    """Why nothing of an `Owned` may be rewritten, or "".

    Args:
      view: the `View`.
      owned: see `graph_rewrite.batch_norm.find`.
      kept: [(Update, Statistic)] of its mean and of its variance, with their rates in training.
      sharing: {variable: the ops of the layers that update it}.
    """
    layer = owned.layer
    reasons = [update.left_alone for update, _ in kept]
    reasons += [each.reason for each in owned.others]
    reasons += [each.reason for each in layer.main.statistics]
    reasons += [statistic.reason for _, statistic in kept]
    reasons.append(layer.reason)
    if view.guards.looped(layer.main.op) and not kept:
        reasons.append(IN_A_LOOP)
    for what, updates in (("mean", owned.mean), ("variance", owned.variance)):
        variables = [update.variable for update, _ in updates]
        names = sorted({whole(view.nodes, name) for name in variables})
        expected = [part for name in names for part in parts(view.nodes, name)]
        if len(names) > 1 or len(variables) > len(expected):
            sentence = "its {} is kept {} times, in {}"
            reasons.append(sentence.format(what, len(variables), _list(names)))
        elif sorted(variables) != sorted(expected):
            reasons.append("only {} is updated of {}".format(_list(variables), _list(expected)))
    reasons.append(_partition(view, [update.variable for update, _ in kept]))
    for name in [whole(view.nodes, update.variable) for update, _ in kept]:
        others = [op for op in sharing[name] if op != layer.main.op]
        if others:
            reasons.append("'{}' updates '{}' too".format(others[0], name))
    rates = {str(update.rate) for update, _ in kept}
    if len(rates) > 1 and all(isinstance(update.rate, float) for update, _ in kept):
        reasons.append("mean and variance move at different rates, {}".format(_list(sorted(rates))))
    if not layer.main.over_batch:
        reasons.append("its statistics are not those of a whole batch")
    return next((each for each in reasons if each), "")


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
