"""The figure: AUC by day of all thirty days above, the differences by day below."""

from benchmarks.harness.picture import picture


def draw(semi, found, margin, path):
    """Plots comparisons to `path`, whose extension is the format.

    Args:
        semi: {day: AUC} of the semi-synchronous job, means over the seeds, all days.
    """
    shape = {"sharex": True, "figsize": (8, 5), "height_ratios": (3, 2)}
    with picture(path, 2, **shape) as (above, below):
        torchrec = found[0].by_day("candidate_auc")
        exact = found[0].by_day("baseline_auc")
        above.plot(*zip(*semi.items()), "o-", color="0.6", label="TensorFlow, semi-sync")
        above.plot(*zip(*exact.items()), "o-", color="C0", label="TensorFlow, exact")
        above.plot(*zip(*torchrec.items()), "x", color="C1", label="TorchRec")
        above.axvline(min(torchrec) - 0.5, color="0.8", linewidth=1)
        above.set_ylabel("AUC of rows not yet trained on")
        above.legend(frameon=False, loc="lower right")
        below.axhspan(-margin, margin, color="0.92")
        marks = {
            "torchrec": ("x-", "C1"),
            "semi-sync": ("o-", "0.6"),
            "whole": ("s-", "C2"),
            "control": (".:", "C3"),
        }
        for one in found:
            mark, color = marks[one.name]
            deltas = one.by_day()
            name = one.name if one.signed else one.name + ", absolute"
            below.plot(*zip(*deltas.items()), mark, color=color, label=name)
        below.set_ylabel("difference")
        below.set_xlabel("day")
        below.legend(frameon=False, ncols=len(found))
