"""Which statistic of a batch a tensor is: upstream, over whatever only hands it on.

A `Statistic` is the mean or the variance of one batch. Both have the same `key`, the tensor of the
mean (output 1 of a FusedBatchNorm), which is how those that belong together find each other.
"""

from collections import namedtuple

from graph_rewrite.graph.constants import array
from graph_rewrite.graph.index import join, split
from graph_rewrite.graph.partitions import joined
from graph_rewrite.graph.passthrough import CARRY, CAST, JOIN, READ, SHAPE, VARIABLES
from graph_rewrite.patterns import fused, moments
from graph_rewrite.patterns.language import first

HOPS = CARRY | CAST | SHAPE | JOIN

MEAN, VARIANCE, OTHER = "mean", "variance", "other"

# kind: MEAN, VARIANCE or OTHER; key: see above; tensor: where it is computed; x: what of; axes: a
# tuple, or None where they are not constant; guards: the branches that lead to it; reason: why
# nothing may be rewritten, or "".
Statistic = namedtuple("Statistic", "kind key tensor x axes guards reason")

_GROUPS = "its statistics are those of groups of rows (virtual batches)"
_RENORM = "it keeps a standard deviation, as batch renormalisation does"
_SCALED = "its variance is multiplied before it is kept"
_WEIGHTED = "its rows are weighted"

# In this order: what several patterns match is, taken alone, what the first of them says.
_PATTERNS = (
    (fused.FUSED_MEAN, MEAN, ""),
    (fused.FUSED_VARIANCE, VARIANCE, ""),
    (moments.VARIANCE, VARIANCE, ""),
    (moments.MEAN, MEAN, ""),
    (moments.WEIGHTED_VARIANCE, VARIANCE, _WEIGHTED),
    (moments.WEIGHTED_MEAN, MEAN, _WEIGHTED),
    (moments.SUM_VARIANCE, VARIANCE, ""),
    (moments.SUM_MEAN, MEAN, ""),
    (moments.OF_GROUPS, OTHER, _GROUPS),
    (moments.DEVIATION, OTHER, _RENORM),
    (moments.SCALED, VARIANCE, _SCALED),
)


def readings(view, tensor):
    """Everything that a tensor may be read as, a list of `Statistic`.

    The mean over a batch of means over images may be a mean of groups, or of pooled features: only
    the normalisation that uses one of the two keys can tell.
    """
    return [
        statistic._replace(guards=guards)
        for end, guards in view.routes(tensor, HOPS)
        for statistic in _at(view.nodes, end)
    ]


def statistics(view, tensor):
    """The statistics that a tensor may be by its own form, nearest first, a list."""
    found = []
    for end, guards in view.routes(tensor, HOPS):
        for statistic in _at(view.nodes, end):
            found.append(statistic._replace(guards=guards))
            break
    return found


def variables(view, tensor):
    """(variable, guards) for each variable whose value a tensor may be, a list.

    A partitioned variable by what its parts share.
    """
    found = []
    for end, guards in view.routes(tensor, HOPS | READ):
        name = split(end)[0]
        name = name if view.nodes[name].op in VARIABLES else joined(view.nodes, end)
        found += [(name, guards)] if name else []
    return found


def _at(nodes, tensor):
    """A Statistic for each pattern that matches at a tensor."""
    for pattern, kind, reason in _PATTERNS:
        found = first(pattern, nodes, tensor)
        if found:
            key = found.get("mean") or found["variance"]
            if nodes.maker(key).op in fused.FUSED:
                key = join(split(key)[0], 1)
            axes = array(nodes, found["axes"]) if found.get("axes") else None
            axes = None if axes is None else tuple(int(axis) for axis in axes.flat)
            yield Statistic(kind, key, tensor, found["x"], axes, frozenset(), reason)
