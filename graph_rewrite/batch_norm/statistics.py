"""Finds the statistic of a batch that a tensor is, upstream past the ops that only pass it on.

A `Statistic` is the mean or the variance of one batch. The two of one batch have the same `key`,
the tensor of the mean (output 1 of a FusedBatchNorm), by which they are paired.
"""

from typing import Any, FrozenSet, NamedTuple, Optional, Tuple

from graph_rewrite.graph.constants import array
from graph_rewrite.graph.ops import CARRY, CAST, FUSED, JOIN, READ, SHAPE, VARIABLES
from graph_rewrite.graph.partitions import joined
from graph_rewrite.patterns import moments
from graph_rewrite.patterns.language import match
from semisync.common.tensor_names import join, split

HOPS = CARRY | CAST | SHAPE | JOIN

MEAN, VARIANCE = "mean", "variance"


class Statistic(NamedTuple):
    """One statistic of a batch.

    Attributes:
        kind: MEAN or VARIANCE.
        key: see the module.
        tensor: where it is computed.
        x: the tensor that it is a statistic of.
        axes: the ones that it reduces, a tuple; None where they are not constant.
        guards: the branches that lead to it, each a `control_flow.Guard`.
        reason: why nothing may be rewritten, or "".
    """

    kind: str
    key: str
    tensor: str
    x: str
    axes: Optional[Tuple[int, ...]]
    guards: FrozenSet[Any]
    reason: str


_WEIGHTED = "its rows are weighted"

# In this order: where several patterns match, the first one decides.
_PATTERNS = (
    (moments.FUSED_MEAN, MEAN, ""),
    (moments.FUSED_VARIANCE, VARIANCE, ""),
    (moments.VARIANCE, VARIANCE, ""),
    (moments.MEAN, MEAN, ""),
    (moments.WEIGHTED_VARIANCE, VARIANCE, _WEIGHTED),
    (moments.WEIGHTED_MEAN, MEAN, _WEIGHTED),
    (moments.SUM_VARIANCE, VARIANCE, ""),
    (moments.SUM_MEAN, MEAN, ""),
)


def readings(view, tensor):
    """Every statistic that a tensor may be, a list of `Statistic`.

    The mean over a batch of means over images may be a mean of groups, or of pooled features: only
    the normalisation that uses one of the two keys decides between them.
    """
    return [
        statistic._replace(guards=guards)
        for end, guards in view.routes(tensor, HOPS)
        for statistic in _at(view.nodes, end)
    ]


def statistics(view, tensor):
    """The statistics that a tensor may be by its own form, nearest first, a list."""
    found = [(nearest(view.nodes, end), guards) for end, guards in view.routes(tensor, HOPS)]
    return [statistic._replace(guards=guards) for statistic, guards in found if statistic]


def nearest(nodes, tensor):
    """The statistic that a tensor is by its own form, or None."""
    return next(_at(nodes, tensor), None)


def variables(view, tensor):
    """The variables whose value a tensor may be; partitions count as one, by their shared name."""
    names = set()
    for end, _ in view.routes(tensor, HOPS | READ):
        name = split(end)[0]
        names.add(name if view.nodes[name].op in VARIABLES else joined(view.nodes, end))
    return names - {None}


def _at(nodes, tensor):
    """A Statistic per pattern that matches at a tensor."""
    for pattern, kind, reason in _PATTERNS:
        bound = match(pattern, nodes, tensor)
        if bound:
            key = bound.get("mean") or bound["variance"]
            if nodes.maker(key).op in FUSED:  # the variance's own output leads to the mean
                key = join(split(key)[0], 1)
            axes = array(nodes, bound["axes"]) if bound.get("axes") else None
            axes = None if axes is None else tuple(int(axis) for axis in axes.flat)
            yield Statistic(
                kind=kind,
                key=key,
                tensor=tensor,
                x=bound["x"],
                axes=axes,
                guards=frozenset(),
                reason=reason,
            )
