"""The tables: a model's scores with other statistics, and the modes' scores.

Differences are paired by seed; their intervals are those of `harness.seeds`.
"""

import collections
import statistics

import numpy as np

import parity
from benchmarks.harness.seeds import paired
from benchmarks.tables import table

OWN = "own"  # the statistics that the others are compared with
FIGURES = ("auc", "log_loss", "calibration")


def figures(labels, scores):
    """{"auc", "log_loss" in nats, "calibration": mean score / mean label} of float32 scores."""
    inside = np.clip(scores.astype(np.float64), 1e-7, 1 - 1e-7)
    right = np.where(labels == 1, inside, 1 - inside)
    values = parity.auc(labels, scores), -np.log(right).mean(), inside.mean() / labels.mean()
    return dict(zip(FIGURES, map(float, values)))


def by_seed(results, mode, name, figure):
    """Dict of seed -> a figure of a mode's models with the statistics `name`."""
    of_mode = [result for result in results if result["mode"] == mode]
    return {result["seed"]: result["scored"][name][figure] for result in of_mode}


def statistics_table(results, mode):
    """Markdown: a line per kind of statistics, for the same weights; differences from their own."""
    columns = (
        "statistics | AUC | minus own: mean, 95 % interval | log loss"
        " | minus own: mean, 95 % interval | predicted / actual"
        " | off the recomputed: means, sd | variances, log"
    )
    rows = []
    runs = [result for result in results if result["mode"] == mode]
    for name in runs[0]["scored"]:
        cells = [name]
        for figure in ("auc", "log_loss"):
            values, own = (by_seed(results, mode, which, figure) for which in (name, OWN))
            cells.append("{:.5f}".format(statistics.mean(values.values())))
            cells.append("" if name == OWN else _difference(values, own))
        ratios = by_seed(results, mode, name, "calibration").values()
        cells.append(_range(ratios, "{:.3f}"))
        distances = [run["distances"][name] for run in runs if run["distances"].get(name)]
        for kind in ("mean", "variance"):
            off = [distance[kind] for distance in distances]
            cells.append("{:.3f}".format(statistics.mean(off)) if off else "")
        rows.append(cells)
    return table(columns, rows)


def modes_table(results):
    """Markdown: a line per mode, with its own statistics; differences from the first mode."""
    modes = list(dict.fromkeys(result["mode"] for result in results))
    columns = (
        "mode | AUC | sd of seeds | minus {first}: mean, 95 % interval | log loss"
        " | minus {first}: mean, 95 % interval | predicted / actual"
        " | own minus recomputed: AUC | log loss".format(first=modes[0])
    )
    rows = []
    for mode in modes:
        cells = [mode]
        for figure in ("auc", "log_loss"):
            values, first = (by_seed(results, which, OWN, figure) for which in (mode, modes[0]))
            cells.append("{:.5f}".format(statistics.mean(values.values())))
            if figure == "auc":
                aucs = list(values.values())
                cells.append("{:.5f}".format(statistics.stdev(aucs)) if len(aucs) > 1 else "")
            cells.append("" if mode == modes[0] else _difference(values, first))
        cells.append(_range(by_seed(results, mode, OWN, "calibration").values(), "{:.3f}"))
        for figure in ("auc", "log_loss"):
            pair = (by_seed(results, mode, name, figure) for name in (OWN, "recomputed"))
            cells.append(_difference(*pair))
        rows.append(cells)
    return table(columns, rows)


def lateness(results, mode):
    """How late the batches of a mode were, over the seeds, in a sentence."""
    ages, stale = collections.Counter(), 0
    for run in (result for result in results if result["mode"] == mode):
        ages.update(run["staleness"])
        stale += run["fates"].get("stale", 0)
    total = sum(ages.values())
    mean = sum(age * count for age, count in ages.items()) / total
    return "mean staleness {:.2f}, {:.2%} of the batches without weight".format(mean, stale / total)


def _difference(values, others):
    return ", ".join(filter(None, paired(values, others).cells))


def _range(values, form):
    """The mean, and the lowest and highest."""
    values = list(values)
    shown = (statistics.mean(values), min(values), max(values))
    return "{} [{}, {}]".format(*map(form.format, shown))
