"""What every process of a job must agree on, and in which words they differ.

The chief posts its settings on the board; a worker compares its own as soon as it holds a ticket.
A policy is known by its weights, for a callable has no better name.
"""

import json

import numpy as np

from semisync.compat import tf
from semisync.staleness import weights_of

PROBES = list(range(17)) + [32, 64, 128, 1024]  # stalenesses at which policies are compared


def probe(policy):
    """The weights of a policy, or of None, at PROBES, a float32 tensor."""
    return weights_of(policy, tf.constant(PROBES, tf.float32))


def describe(optimizer, weights):
    """The settings of a `GlobalBatchOptimizer` as a JSON string.

    Args:
      optimizer: with its graph built.
      weights: the values of `probe`.
    """
    return json.dumps(
        {
            "batches_per_step": optimizer.batches_per_step,
            "on_stale": optimizer.on_stale,
            "paced": optimizer.paced,
            "in_flight": optimizer.in_flight,
            "payload": optimizer.manifest,
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
    if name == "payload":
        only = [entry for entry in mine if entry not in chiefs]
        missing = [entry for entry in chiefs if entry not in mine]
        return "variables, sparse_mean, policy or batch_norm ({} here, {} there)".format(
            (only or ["less"])[0], (missing or ["less"])[0]
        )
    return "{} is {!r} here and {!r} there".format(name, mine, chiefs)
