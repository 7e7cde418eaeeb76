"""What every process of a job must agree on, and in which words they differ.

The chief posts its settings on the board; a worker compares its own as soon as it holds a ticket.
A policy is known by its weights, for a callable has no better name.
"""

import json

import numpy as np

from semisync.common.compat import tf
from semisync.common.errors import UsageError
from semisync.staleness import weights_of

PROBES = list(range(17)) + [32, 64, 128, 1024]  # stalenesses at which policies are compared


def probe(policy):
    """The weights of a policy, or of None, at PROBES, a float32 tensor."""
    return weights_of(policy, tf.constant(PROBES, tf.float32))


def check(weights):
    """Raises UsageError unless `weights`, the values of `probe`, are those of a policy."""
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
                "{} with {:g}: what is too stale stays so, since no worker sends it; let it give "
                "0 from there on".format(rejected, staleness, weight)
            )


def describe(handles, weights):
    """The settings of a `GlobalBatchOptimizer` as a JSON string.

    Args:
      handles: its `Handles`.
      weights: the values of `probe`.
    """
    return json.dumps(
        {
            "batches_per_step": handles.batches_per_step,
            "on_stale": handles.on_stale,
            "paced": handles.paced,
            "in_flight": handles.in_flight,
            "hyperparameters": handles.hyperparameters,
            "payload": handles.manifest,
            "staleness": np.round(weights.astype(float), 6).tolist(),
        },
        sort_keys=True,
    )


def difference(mine, chiefs):
    """One sentence on how two descriptions differ; an empty string when they do not."""
    if mine == chiefs:
        return ""
    mine, chiefs = json.loads(mine), json.loads(chiefs)
    found = [
        _on(name, mine[name], chiefs[name]) for name in sorted(mine) if mine[name] != chiefs[name]
    ]
    return "other settings here than in the chief: {}; start every process with the same".format(
        ", ".join(found)
    )


def _on(name, mine, chiefs):
    if name == "staleness":
        at, here, there = next((s, m, c) for s, m, c in zip(PROBES, mine, chiefs) if m != c)
        return "staleness {} weighs {:g} here and {:g} there".format(at, here, there)
    if name == "hyperparameters":
        which = next(n for n in sorted({*mine, *chiefs}) if mine.get(n) != chiefs.get(n))
        return "the optimizer's {} is {} here and {} there".format(
            which, mine.get(which), chiefs.get(which)
        )
    if name == "payload":
        only = [entry for entry in mine if entry not in chiefs]
        missing = [entry for entry in chiefs if entry not in mine]
        return "variables, sparse_mean, policy or batch_norm ({} here, {} there)".format(
            (only or ["less"])[0], (missing or ["less"])[0]
        )
    return "{} is {!r} here and {!r} there".format(name, mine, chiefs)
