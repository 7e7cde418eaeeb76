"""Pictures of the runs.

strip_plot       a strip per mode: one dot per seed, a thin line through a seed's dots, a bar at the
                 mean
frontier_plot    a point per mode: its pace to the right, its AUC minus sync's upwards, with the
                 interval over the seeds
"""

import statistics

from benchmarks.auc_evidence_parts.report import by_seed, differences, paces
from benchmarks.harness.picture import picture
from benchmarks.harness.seeds import MARGIN

ENDS = ("sync", "async", "async-tuned")  # of the frontier
PEERS = ("native-sync", "backups")


def strip_plot(results, path):
    """Writes the figure."""
    aucs = by_seed(results)
    modes = list(aucs)
    with picture(path, figsize=(1.5 + 1.3 * len(modes), 4)) as axes:
        for seed in sorted({seed for seeds in aucs.values() for seed in seeds}):
            points = [(at, aucs[mode][seed]) for at, mode in enumerate(modes) if seed in aucs[mode]]
            axes.plot(*zip(*points), "o-", color="0.55", linewidth=0.6, markersize=4)
        for at, mode in enumerate(modes):
            mean = statistics.mean(aucs[mode].values())
            axes.hlines(mean, at - 0.25, at + 0.25, color="C0", linewidth=2)
            axes.annotate("{:.4f}".format(mean), (at + 0.27, mean), color="C0", va="center")
        axes.set_xticks(range(len(modes)), modes)
        axes.set_xlim(-0.5, len(modes) - 0.2)
        axes.set_ylabel("AUC, held-out days")


def frontier_plot(results, path):
    """Writes the figure; paces are multiples of the asynchronous one."""
    from_sync, pace = differences(results), paces(results)
    whole = pace.get("async") or pace["async-tuned"]
    with picture(path, figsize=(7, 4.2)) as axes:
        axes.axhspan(-MARGIN, MARGIN, color="0.93", zorder=0)
        axes.axhline(0, color="0.7", linewidth=0.8)
        means = {mode: found.mean for mode, found in from_sync.items()}
        floor = 1.5 * min([*sorted(means.values())[1:], -0.002])  # who alone is lower stands on it
        for number, (mode, fast) in enumerate(sorted(pace.items(), key=lambda one: one[1])):
            found, x, y = from_sync.get(mode), fast / whole, means.get(mode, 0.0)
            color = "C1" if mode in ENDS else "0.5" if mode in PEERS else "C0"
            marker, text, place = "o", mode, (6, (-14, 8, 20, 8)[number % 4])
            if y < floor:
                marker, text, place = "v", "{}, {:+.4f}".format(mode, y), (6, 6)
            elif found and found.low is not None:
                axes.plot([x, x], [found.low, found.high], color=color, linewidth=1.2)
            at = (x, max(y, 0.97 * floor))
            axes.plot(*at, marker, color=color)
            axes.annotate(text, at, place, textcoords="offset points", fontsize=9)
        axes.set_ylim(floor, 0.002)  # an interval may go beyond
        axes.margins(x=0.12)
        axes.set_xlabel("batches per second, x asynchronous")
        axes.set_ylabel("AUC minus exact global batches")
