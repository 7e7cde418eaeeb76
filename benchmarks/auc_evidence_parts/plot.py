"""A strip per mode: one dot per seed, a thin line through a seed's dots, a bar at the mean."""

import statistics

from benchmarks.auc_evidence_parts.report import by_seed


def strip_plot(results, path):
    """Writes the figure; the ending of `path`, such as .svg, decides its format."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    aucs = by_seed(results)
    modes = list(aucs)
    figure, axes = plt.subplots(figsize=(1.5 + 1.3 * len(modes), 4), layout="constrained")
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
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path)
    plt.close(figure)
