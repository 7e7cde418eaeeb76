"""The modes of training that are compared, and which strengths of each are tried.

sync                exact global batches
semi-sync           global batches whose gradients are late by the steps of the trace
async               each local batch by itself, late by the updates of the trace
paced start, end    semi-sync; none is late in a first share of the steps, or in the last 10 %
warm-up             semi-sync, the rate rises from 0 over the first 10 % of steps
mean staleness S    semi-sync with M (1 + S) tickets that are out or wait to be applied
inverse             semi-sync, a batch weighs 1 / staleness (IJCAI 2016)
look-ahead          a worker reads w + s d, d = running mean of the last changes of w
                    (arXiv 2602.19580: finite differences); the tower's alone, or all
delay compensation  g + lambda g g (w - w_read) (DC-ASGD, ICML 2017), the tower's alone, or all
curvature           g + c B v (w - w_read): the same with the mean square v that the optimizer
                    keeps anyway, times the rows B of a global batch, as the curvature
beta1               semi-sync, Adam with a lower beta1 (asynchrony adds momentum: Mitliagkas)
revision            AdaptiveRevision (NeurIPS 2014) instead of Adagrad
cowclip             a row's gradient is clipped to r x count x norm (AAAI 2023)
"""

from typing import Any, List, NamedTuple, Optional, Tuple

BOUND = 4  # of the staleness, beyond which a batch does not count


class Method(NamedTuple):
    """One mode of training with one strength; see the module."""

    late: Optional[str] = "semi-sync"  # None, "semi-sync" or "async"
    wanted: Optional[float] = None  # mean staleness
    paced_first: float = 0.0  # share of the steps
    paced_last: float = 0.0
    warm_up: float = 0.0
    inverse: bool = False
    look_ahead: float = 0.0  # steps
    compensation: float = 0.0  # lambda
    curvature: float = 0.0  # c
    tower_only: bool = False
    beta1: float = 0.9
    revision: bool = False
    clip: float = 0.0


class Mode(NamedTuple):
    """A mode: its name, and (parameter, strengths, the first by default), or None."""

    name: str
    method: Method
    strengths: Optional[Tuple[str, List[Any]]] = None

    def at(self, strength):
        """The `Method` with a strength."""
        return self.method._replace(**{self.strengths[0]: strength}) if strength else self.method


def modes(optimizer, batches_per_step):
    """The modes for "adam" or "adagrad", in the order in which they are tried."""
    late = Method()
    found = [
        Mode("sync", Method(late=None)),
        Mode("semi-sync", late),
        Mode("paced start", late, ("paced_first", [0.1, 0.05, 0.2])),
        Mode("paced end", Method(paced_last=0.1)),
        Mode("warm-up", Method(warm_up=0.1)),
        Mode("sync, warm-up", Method(late=None, warm_up=0.1)),
        Mode("look-ahead, all", late, ("look_ahead", [1.0, 0.5, 2.0])),
        Mode("look-ahead, tower", Method(tower_only=True), ("look_ahead", [1.0, 0.5, 2.0])),
        Mode("curvature, all", late, ("curvature", [0.1, 0.02, 0.5])),
        Mode("curvature, tower", Method(tower_only=True), ("curvature", [0.1, 0.02, 0.5])),
        Mode("delay compensation, all", late, ("compensation", [64.0, 1.0, 1024.0])),
        Mode("inverse", Method(inverse=True)),
        Mode("mean staleness 1", Method(wanted=1.0)),
        Mode("mean staleness 0.5", Method(wanted=0.5)),
        Mode("async", Method(late="async")),
    ]
    if optimizer == "adam":
        found.insert(4, Mode("beta1", late, ("beta1", [0.8, 0.7, 0.5])))
        found.insert(5, Mode("sync, beta1", Method(late=None), ("beta1", [0.8, 0.7, 0.5])))
        found.append(Mode("beta1, mean staleness 1", Method(wanted=1.0), found[4].strengths))
    else:
        found.insert(4, Mode("revision", Method(revision=True)))
    if batches_per_step > 8:
        found += [
            Mode("cowclip", late, ("clip", [1e-3, 3e-4, 1e-2])),
            Mode("sync, cowclip", Method(late=None), ("clip", [1e-3, 3e-4, 1e-2])),
        ]
    return found
