"""The tables: what a model scores with other statistics, and what the modes score.

Differences are paired by seed; their intervals are those of `auc_evidence_parts.spread`.
"""

import statistics

import numpy as np

import parity
from benchmarks.auc_evidence_parts import spread

OWN = "own"  # what the others are compared with
FIGURES = ("auc", "log_loss", "calibration")


def figures(labels, scores):
    """{"auc", "log_loss" in nats, "calibration": mean score / mean label} of float32 scores."""
    inside = np.clip(scores.astype(np.float64), 1e-7, 1 - 1e-7)
    right = np.where(labels == 1, inside, 1 - inside)
    values = parity.auc(labels, scores), -np.log(right).mean(), inside.mean() / labels.mean()
    return dict(zip(FIGURES, map(float, values)))


def by_seed(results, mode, name, figure):
    """Dict of seed -> a figure of a mode's models with the statistics `name`."""
    return {each["seed"]: each["scored"][name][figure] for each in results if each["mode"] == mode}


def statistics_table(results, mode):
    """Markdown: a line for each statistics, the same weights in all; differences from their own."""
    lines = [
        "| statistics | AUC | minus own: mean, 95 % interval | log loss"
        " | minus own: mean, 95 % interval | predicted / actual"
        " | off the recomputed: means, sd | variances, log |",
        "|---|---|---|---|---|---|---|---|",
    ]
    runs = [each for each in results if each["mode"] == mode]
    for name in runs[0]["scored"]:
        cells = [name]
        for figure in ("auc", "log_loss"):
            values, own = (by_seed(results, mode, which, figure) for which in (name, OWN))
            cells.append("{:.5f}".format(statistics.mean(values.values())))
            cells.append("" if name == OWN else _difference(values, own))
        ratios = by_seed(results, mode, name, "calibration").values()
        cells.append(_range(ratios, "{:.3f}"))
        distances = [each["distances"].get(name) for each in runs]
        for kind in ("mean", "variance"):
            found = [each[kind] for each in distances if each]
            cells.append("{:.3f}".format(statistics.mean(found)) if found else "")
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def modes_table(results):
    """Markdown: a line a mode, with its own statistics; differences from the first mode."""
    modes = list(dict.fromkeys(each["mode"] for each in results))
    lines = [
        "| mode | AUC | sd of seeds | minus {first}: mean, 95 % interval | log loss"
        " | minus {first}: mean, 95 % interval | predicted / actual"
        " | own minus recomputed: AUC | log loss |".format(first=modes[0]),
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for mode in modes:
        cells = [mode]
        for figure in ("auc", "log_loss"):
            values, first = (by_seed(results, which, OWN, figure) for which in (mode, modes[0]))
            cells.append("{:.5f}".format(statistics.mean(values.values())))
            if figure == "auc":
                found = list(values.values())
                cells.append("{:.5f}".format(statistics.stdev(found)) if len(found) > 1 else "")
            cells.append("" if mode == modes[0] else _difference(values, first))
        cells.append(_range(by_seed(results, mode, OWN, "calibration").values(), "{:.3f}"))
        for figure in ("auc", "log_loss"):
            pair = (by_seed(results, mode, name, figure) for name in (OWN, "recomputed"))
            cells.append(_difference(*pair))
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _difference(values, others):
    found = spread.paired(values, others)
    if found.sd is None:
        return "{:+.5f}".format(found.mean)
    return "{:+.5f}, {:+.5f} to {:+.5f}".format(found.mean, found.low, found.high)


def _range(values, form):
    """The mean, and the lowest and highest."""
    values = list(values)
    shown = (statistics.mean(values), min(values), max(values))
    return "{} [{}, {}]".format(*map(form.format, shown))
