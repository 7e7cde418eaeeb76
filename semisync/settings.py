"""The settings that every process of a job must agree on, and the wording of a difference.

The chief publishes its settings in the job state; a worker compares its own as soon as it holds a
ticket. A staleness policy is compared by its weights, since a callable has no better identity.
"""

import json
from typing import Any, Dict, List, NamedTuple

import numpy as np

from semisync.common import json_text
from semisync.common.compat import tf
from semisync.common.errors import UsageError
from semisync.staleness import PROBES, weights_of


class Settings(NamedTuple):
    """The settings of a `GlobalBatchOptimizer`, apart from its staleness policy.

    Attributes:
        batches_per_step, on_stale, on_nonfinite, paced, in_flight: see `GlobalBatchOptimizer`.
        hyperparameters: {name: value} of the wrapped optimizer's own numbers.
        payload: the tensors that each batch sends, a list of strings.
    """

    batches_per_step: int
    on_stale: str
    on_nonfinite: str
    paced: Any
    in_flight: Any
    hyperparameters: Dict[str, float]
    payload: List[str]


def weights_at_probes(staleness_policy):
    """The weights of a staleness policy, or of None, at PROBES, a float32 tensor."""
    return weights_of(staleness_policy, tf.constant(PROBES, tf.float32))


def check(weights):
    """Raises UsageError unless `weights`, at PROBES, are a staleness policy's."""
    rejected = None
    for staleness, weight in zip(PROBES, weights.tolist()):
        if not 0 <= weight <= 1:
            raise UsageError(
                "staleness: the policy weighs a batch of staleness {} with {}: a weight is a "
                "number from 0 to 1".format(staleness, weight)
            )
        if weight == 0 and rejected is None:
            rejected = staleness
        if weight > 0 and rejected is not None:
            raise UsageError(
                "staleness: the policy weighs a batch of staleness {} with 0 and one of staleness "
                "{} with {:g}: workers send no batch that is too stale already; return 0 for every "
                "larger staleness, too".format(rejected, staleness, weight)
            )


def describe(settings, weights):
    """`Settings` and the staleness policy's weights at PROBES as a JSON string."""
    staleness = np.round(weights.astype(float), 6).tolist()
    return json.dumps(dict(settings._asdict(), staleness=staleness), sort_keys=True)


def difference(own, chiefs):
    """One sentence on how two descriptions differ; an empty string when they do not."""
    if own == chiefs:
        return ""
    own, chiefs = json_text.loads(own), json_text.loads(chiefs)
    differences = [
        _on(name, own[name], chiefs[name]) for name in sorted(own) if own[name] != chiefs[name]
    ]
    return (
        "the settings here differ from the chief's: {}; start every process with the same".format(
            ", ".join(differences)
        )
    )


def _on(name, own, chiefs):
    if name == "staleness":
        at, here, there = next((s, m, c) for s, m, c in zip(PROBES, own, chiefs) if m != c)
        return "staleness {} weighs {:g} here and {:g} there".format(at, here, there)
    if name == "hyperparameters":
        differing = next(n for n in sorted({*own, *chiefs}) if own.get(n) != chiefs.get(n))
        return "the optimizer's {} is {} here and {} there".format(
            differing, own.get(differing), chiefs.get(differing)
        )
    if name == "payload":
        only = [entry for entry in own if entry not in chiefs]
        missing = [entry for entry in chiefs if entry not in own]
        return "variables, sparse_mean, policy or batch_norm ({} here, {} there)".format(
            (only or ["less"])[0], (missing or ["less"])[0]
        )
    return "{} is {!r} here and {!r} there".format(name, own, chiefs)
