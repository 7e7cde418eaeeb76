"""AUC, placements and DeLong's covariance by their definitions: every pair, no sorting."""

import numpy as np


def kernel(positive_scores, negative_scores):
    """(P, Q): 1 where the positive wins, 1/2 where they tie, 0 where it loses."""
    above = positive_scores[:, None] > negative_scores[None, :]
    equal = positive_scores[:, None] == negative_scores[None, :]
    return above + 0.5 * equal


def auc(labels, scores, weights=None):
    """The mean of the kernel, each pair weighted by the product of its rows' weights."""
    positive = np.asarray(labels) == 1
    weights = np.ones(len(positive)) if weights is None else np.asarray(weights, float)
    wins = kernel(scores[positive], scores[~positive])
    pairs = np.outer(weights[positive], weights[~positive])
    return (wins * pairs).sum() / pairs.sum()


def delong_variance(labels, baseline, candidate):
    """Var(AUC_candidate - AUC_baseline) by the 2x2 covariances S10 and S01 of the 1988 paper."""
    positive = np.asarray(labels) == 1
    wins = [kernel(scores[positive], scores[~positive]) for scores in (baseline, candidate)]
    s10 = np.cov([w.mean(axis=1) for w in wins])
    s01 = np.cov([w.mean(axis=0) for w in wins])
    contrast = np.array([-1.0, 1.0])
    covariance = s10 / wins[0].shape[0] + s01 / wins[0].shape[1]
    return contrast @ covariance @ contrast


def obuchowski_variance(labels, baseline, candidate, clusters):
    """The clustered variance of the 1997 paper: S10, S01 and S11 over per-cluster sums.

    Her S10 has the factor I10 / ((I10 - 1) M), I10 the clusters that hold one of the M positives;
    S01 likewise of the negatives; S11 has I / (I - 1), I all clusters.
    """
    positive = np.asarray(labels) == 1
    clusters = np.asarray(clusters)
    names = np.unique(clusters)
    wins = [kernel(scores[positive], scores[~positive]) for scores in (baseline, candidate)]
    difference = wins[1] - wins[0]
    delta = difference.mean()
    p, q = difference.shape
    of_positives, of_negatives = clusters[positive], clusters[~positive]
    up = np.array([(difference.mean(1) - delta)[of_positives == name].sum() for name in names])
    down = np.array([(difference.mean(0) - delta)[of_negatives == name].sum() for name in names])
    i10, i01, i = (len(np.unique(held)) for held in (of_positives, of_negatives, clusters))
    s10 = i10 / ((i10 - 1) * p) * (up**2).sum()
    s01 = i01 / ((i01 - 1) * q) * (down**2).sum()
    s11 = i / (i - 1) * (up * down).sum()
    return s10 / p + s01 / q + 2 * s11 / (p * q)
