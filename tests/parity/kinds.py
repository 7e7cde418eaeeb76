"""A comparison of every kind, small and made once."""

import dataclasses
import functools

import numpy as np

import parity
from parity.histogram.compare import compare_summary
from parity.histogram.summary import Summary

KINDS = (
    "plain",
    "logits",
    "clusters",
    "weights",
    "runs",
    "days",
    "slices",
    "histograms",
    "diagnosis",
)


def columns(rows=3000, noise=0.1, seed=0):
    """Labels, and the probabilities of two models."""
    rng = np.random.default_rng(seed)
    labels = rng.random(rows) < 0.3
    logits = rng.normal(size=rows) + labels
    pair = (logits, logits + noise * rng.normal(size=rows))
    return (labels, *(1 / (1 + np.exp(-scores)) for scores in pair))


@functools.lru_cache(maxsize=None)
def comparison(kind):
    """One of KINDS."""
    labels, old, new = columns()
    place = np.arange(len(labels))
    if kind == "logits":
        return parity.compare(labels, 9 * old, 9 * new - 1)
    if kind == "clusters":
        return parity.compare(labels, old, new, clusters=place // 5)
    if kind == "weights":
        return parity.compare(labels, old, new, weights=place % 3)
    if kind == "runs":
        return parity.compare_runs(labels, [old, new, old**2], [new, columns(seed=0)[2]])
    if kind == "diagnosis":
        new = np.roll(new, 3)
        return parity.diagnose(parity.compare(labels, old, new), labels, old, new)
    if kind == "histograms":
        summary = Summary()
        summary.add(labels, old, new)
        return compare_summary(summary, 0.05)
    found = parity.compare(labels, old, new, 0.01)
    if kind == "days":
        found = dataclasses.replace(
            found, days=parity.compare_days(labels, old, new, place % 7, 0.01)
        )
    if kind == "slices":
        names = np.where(place == 7, "rare", np.char.add("part ", (place % 4).astype(str)))
        found = dataclasses.replace(
            found,
            slices=(("os", parity.compare_slices(labels, old, new, names, 0.01)),),
            worst=parity.worst_rows(labels, old, new, 5),
        )
    return found
