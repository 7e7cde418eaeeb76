"""The AUC that a model must beat: smoothed means of user and problem, added as logits."""

import numpy as np

import parity

STRENGTH = 10.0  # answers at the overall mean that each user and problem starts with


def means_auc(answers, train, held_out):
    """The AUC on the slice `held_out` of means over the slice `train`."""
    labels = np.asarray(answers.labels[train], np.float64)
    overall = labels.mean()
    logit = np.zeros(held_out.stop - held_out.start)
    names = list(answers.about["fields"])
    for field in (names.index("user"), names.index("problem")):
        ids, size = answers.fields[train, field], answers.about["fields"][names[field]]
        count = np.bincount(ids, minlength=size)
        right = np.bincount(ids, labels, minlength=size)
        mean = (right + STRENGTH * overall) / (count + STRENGTH)
        logit += np.log(mean / (1 - mean))[answers.fields[held_out, field]]
    return parity.auc(answers.labels[held_out], logit)
