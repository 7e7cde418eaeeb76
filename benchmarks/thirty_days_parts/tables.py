"""The result as Markdown tables."""

from benchmarks.tables import table

NAMES = {
    "torchrec": "TorchRec - TensorFlow, the same global batches",
    "semi-sync": "TorchRec - TensorFlow going on semi-synchronously",
    "whole": "TorchRec - TensorFlow, synchronous for all days",
    "control": "control: TensorFlow - TensorFlow of another seed",
}


def pooled(found):
    """A line per comparison, over all days from the switch on."""
    columns = (
        "difference in AUC | baseline | by seed | mean | 95 % interval over the seeds"
        " | verdict by seed | farthest day | slope per day"
    )
    lines = []
    for one in found:
        farthest = max(
            (part.delta for days in one.days for part in days.days), key=lambda delta: abs(delta)
        )
        mean, interval, slope = _over_seeds(one)
        cells = [
            NAMES[one.name],
            "{:.5f}".format(sum(one.baseline) / len(one.baseline)),
            " ".join("{:+.5f}".format(delta) for delta in one.deltas),
            mean,
            interval,
            ", ".join(sorted({"{} x {}".format(one.verdicts.count(v), v) for v in one.verdicts})),
            "{:+.5f}".format(farthest),
            slope,
        ]
        lines.append(cells)
    return table(columns, lines)


def _over_seeds(one):
    """The cells of the mean, of its interval and of the slope."""
    if not one.signed:
        return "{:.5f} (absolute)".format(sum(map(abs, one.deltas)) / len(one.deltas)), "", ""
    return [*one.over_seeds().cells, "{:+.1e} -+ {:.0e}".format(*one.slope())]


def by_day(found):
    """A line per day: AUCs and differences, means over the seeds."""
    first = found[0]
    columns, lines = ["day", "TensorFlow", "TorchRec", *(one.name for one in found)], []
    old, new = first.by_day("baseline_auc"), first.by_day("candidate_auc")
    deltas = [one.by_day() for one in found]
    for day in old:
        cells = [str(day), "{:.5f}".format(old[day]), "{:.5f}".format(new[day])]
        cells += ["{:+.5f}".format(one[day]) for one in deltas]
        lines.append(cells)
    return table(columns, lines)
