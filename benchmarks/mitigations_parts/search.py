"""The rate and the strength of each mode: five validation runs each, the best AUC wins.

1. Three rates, with the mode's first strength.
2. At the best of them the two other strengths; for a mode without, two more rates: a quarter above
   and below, or beyond the end of the three where an end was the best.

On the small data set each is the mean over several seeds. Settings with which a run diverged lose.
"""

import math
import statistics

SEEDS = {"assist": (100,), "sparrow": (100, 101)}
RATES = {  # at M = 8; with M they grow as its root, as with asynchronous training they fall
    ("assist", "adam"): (0.004, 0.006, 0.009),
    ("assist", "adagrad"): (0.035, 0.05, 0.07),
    ("sparrow", "adam"): (0.0006, 0.001, 0.0016),
    ("sparrow", "adagrad"): (0.007, 0.014, 0.028),
}


def settings(runs, mode, trials):
    """(rate, strength or None) for a `methods.Mode`, after 3, 4 or 5 trials, or the middle rate."""
    block = runs.block
    batches = 1 if mode.method.late == "async" else block["size"]
    factor = (batches / 8) ** 0.5
    rates = [round(rate * factor, 6) for rate in RATES[block["data"], block["optimizer"]]]
    strengths = mode.strengths[1] if mode.strengths else [None]
    if not trials:
        return rates[1], strengths[0]
    tried = {}

    def attempt(rate, strength):
        tried[rate, strength] = mean(
            runs.figures(mode, "validation", rate, strength, seed)["auc"]
            for seed in SEEDS[block["data"]]
        )

    for rate in rates:
        attempt(rate, strengths[0])
    best, _ = max(tried, key=tried.get)
    more = [(best, strength) for strength in strengths[1:]]
    more = more or [(rate, None) for rate in _more(rates, best)]
    for rate, strength in more[: trials - len(rates)]:
        attempt(rate, strength)
    return max(tried, key=tried.get)


def mean(aucs):
    """The mean of the runs' AUCs, -inf where one is None, as it is where the run diverged."""
    aucs = list(aucs)
    return -math.inf if None in aucs else statistics.mean(aucs)


def _more(rates, best):
    if best == rates[0]:
        factors = (1 / 1.5, 1 / 2.25)
    elif best == rates[-1]:
        factors = (1.5, 2.25)
    else:
        factors = (0.8, 1.25)
    return [round(best * factor, 6) for factor in factors]
