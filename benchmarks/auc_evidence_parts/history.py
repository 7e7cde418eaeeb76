"""Features of a user's earlier answers; nothing here sees the answer to predict.

All arrays are in the order of (user, seq), one row per answer. "Earlier" means a smaller seq of the
same user, whether that answer lies in the training days or not, as a served model would know it.
"""

import numpy as np

PATTERN = 5  # outcomes of the last answers: none, wrong or right
WINDOW = 20  # answers that count as recent
BAG = 16  # earlier (problem, outcome) pairs whose vectors are averaged
PADDING = 0  # in the bag, where there are fewer earlier answers


def starts(*keys):
    """For rows sorted by the keys: [rows] the index at which each row's group begins."""
    new = np.zeros(len(keys[0]), bool)
    new[0] = True
    for key in keys:
        new[1:] |= key[1:] != key[:-1]
    return np.maximum.accumulate(np.where(new, np.arange(len(new)), 0))


def earlier(labels, *keys):
    """Per row, over the earlier rows with equal keys: how many there are, how many were right.

    Returns: (count, right, last, before_last), each [rows]; the last two are the outcomes of the
    two rows before: 0 none, 1 wrong, 2 right.
    """
    order = np.lexsort(tuple(keys[::-1]))  # stable: keeps the order of time within a group
    sorted_keys = [key[order] for key in keys]
    first = starts(*sorted_keys)
    count = np.arange(len(order)) - first
    total = np.concatenate([[0], np.cumsum(labels[order])])
    right = total[:-1] - total[first]
    columns = [count, right] + [lagged(labels[order] + 1, count, lag) for lag in (1, 2)]
    back = np.empty_like(order)
    back[order] = np.arange(len(order))
    return tuple(values[back] for values in columns)


def lagged(values, count, lag):
    """The value `lag` rows before, 0 where the group has fewer than `lag` earlier rows."""
    shifted = np.concatenate([np.zeros(lag, values.dtype), values[:-lag]])
    return np.where(count >= lag, shifted, 0)


def rate(right, count, buckets):
    """The smoothed success rate (right + 1) / (count + 2) in equal buckets, from 0."""
    return np.minimum((right + 1) * buckets // (count + 2), buckets - 1)


def magnitude(count, top):
    """0 for none, 1 for one, 2 for 2-3, 3 for 4-7, ..., at most `top`."""
    return np.minimum(np.ceil(np.log2(count + 1)).astype(np.int64), top)


def fields(user, problem, skill, label):
    """The single-valued history features: dict of name -> (ids [rows], number of ids)."""
    count, right, _, _ = earlier(label, user)
    outcomes = [lagged(label + 1, count, lag) for lag in range(1, PATTERN + 1)]
    pattern = sum(outcome * 3**place for place, outcome in enumerate(outcomes))
    total = np.concatenate([[0], np.cumsum(label)])
    window = np.minimum(count, WINDOW)
    row = np.arange(len(label))
    recent = total[row] - total[row - window]
    skill_count, skill_right, skill_last, skill_second = earlier(label, user, skill)
    problem_count, _, problem_last, _ = earlier(label, user, problem)
    same_problem = lagged(problem, count, 1) == problem
    same_skill = lagged(skill, count, 1) == skill
    previous = np.where(outcomes[0] > 0, 1 + 4 * same_problem + 2 * same_skill + outcomes[0] - 1, 0)
    return {
        "last outcomes": (pattern, 3**PATTERN),
        "success rate": (rate(right, count, 20), 20),
        "answers": (magnitude(count, 12), 13),
        "recent success rate": (rate(recent, window, WINDOW), WINDOW),
        "skill's success rate": (
            rate(skill_right, skill_count, 10) * 8 + magnitude(skill_count, 7),
            80,
        ),
        "skill's last outcomes": (skill_last * 3 + skill_second, 9),
        "problem's last outcome": (problem_last * 5 + np.minimum(problem_count, 4), 15),
        "previous answer": (previous, 9),
    }


def bags(user, problem, label):
    """int64 [rows, BAG]: the last earlier answers, each 1 + 2 x problem + outcome, or PADDING."""
    first = starts(user)
    count = np.arange(len(user)) - first
    answers = 1 + 2 * problem + label
    return np.stack([lagged(answers, count, lag) for lag in range(1, BAG + 1)], axis=1)
