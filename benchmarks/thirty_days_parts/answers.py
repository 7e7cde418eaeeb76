"""The answers of ASSISTments 2017, whose ids are counted from 0: users, problems, skills.

The features are those of `auc_evidence_parts.history`, under names without blanks, and the last
earlier answers as int16 [rows, BAG] padded with 0.
"""

import os

import numpy as np

from benchmarks.auc_evidence_parts import data as answers_of

DEFAULT = answers_of.DEFAULT
FEATURES = [  # in the order of `auc_evidence_parts.data`; user is hashed from text
    "user",
    "problem",
    "skill",
    "last_outcomes",
    "success_rate",
    "answers",
    "recent_success_rate",
    "skill_success_rate",
    "skill_last_outcomes",
    "problem_last_outcome",
    "previous_answer",
]
LISTS = ("before",)


def prepare(interactions, folder, plan):
    """Writes the answers with their features, once for all seeds."""
    os.makedirs(folder)
    answers_of.prepare(interactions, folder)


def days(folder, plan):
    """Each day's columns, in the order of the log."""
    answers = answers_of.load(folder)
    for day in range(plan.days):
        rows = answers_of.rows_of(answers, (day, day + 1))
        columns = dict(zip(FEATURES, answers.fields[rows].T))
        columns["before"], columns["label"] = answers.bags[rows], answers.labels[rows]
        columns["key"] = np.arange(rows.start, rows.stop)
        yield columns


def user(ids):
    """Users as a file of raw rows has them."""
    return ["user {}".format(one) for one in ids]
