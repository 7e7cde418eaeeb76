"""The figures of all repeats as Markdown: median [smallest, largest], ratios within a repeat.

A case is the JSON that `semi_sync` writes: its `title`, and `repeats`, a list of {mode: its
`measures.figures`}.
"""

import statistics

from benchmarks.harness.turns import ratios
from benchmarks.tables import row, spread

# The ratios that are reported: figure, mode over mode.
RATIOS = {
    "semi-sync / async": ("batches_per_second", "semi-sync", "async"),
    "semi-sync / native-sync": ("batches_per_second", "semi-sync", "native-sync"),
    "sync / native-sync": ("batches_per_second", "sync", "native-sync"),
    "CPU semi-sync / async": ("cpu_per_batch", "semi-sync", "async"),
    "CPU native-sync / async": ("cpu_per_batch", "native-sync", "async"),
    "PS CPU semi-sync / async": ("ps_cpu_per_batch", "semi-sync", "async"),
    "PS CPU semi-sync / native-sync": ("ps_cpu_per_batch", "semi-sync", "native-sync"),
    "PS CPU sync / async": ("ps_cpu_per_batch", "sync", "async"),
    "start-up semi-sync / native-sync": ("startup_seconds", "semi-sync", "native-sync"),
}
# The ratios that a reader wants to know first.
SHORT = {
    "x asynchronous": "semi-sync / async",
    "x native sync": "semi-sync / native-sync",
    "parameter servers' CPU, x asynchronous": "PS CPU semi-sync / async",
}
# Column: figure, digits.
COLUMNS = {
    "batches/s": ("batches_per_second", 1),
    "CPU, ms per batch": ("cpu_per_batch", 2),
    "of it PS": ("ps_cpu_per_batch", 2),
    "chief": ("chief_cpu_per_batch", 2),
    "other workers": ("workers_cpu_per_batch", 2),
    "PS memory, MB": ("ps_memory_mb", 0),
    "grown by, MB": ("ps_memory_growth_mb", 0),
    "start-up, s": ("startup_seconds", 2),
    "M begun to first update, s": ("first_update_seconds", 2),
    "mean staleness": ("staleness_mean", 2),
}
HEAD = ["case", "mode", *COLUMNS, "max, beyond the bound"]
SHORT_HEAD = ["case", *SHORT]
RATIO_HEAD = ["case", *RATIOS]


def values(case, mode, figure):
    """The figure in each repeat; [] where the mode was not trained, or one is missing."""
    found = [repeat[mode][figure] for repeat in case["repeats"] if mode in repeat]
    return [] if None in found else found


def rows(case):
    """A line per mode of a case."""
    for mode in sorted(case["repeats"][0]):
        cells = [
            _cell(values(case, mode, figure), "{{:.{}f}}".format(digits))
            for figure, digits in COLUMNS.values()
        ]
        yield row(case["title"], mode, *cells, _late(case, mode))


def _late(case, mode):
    """The largest staleness, and the share beyond the bound where there is one."""
    most, beyond = (values(case, mode, "staleness_" + name) for name in ("max", "beyond_bound"))
    if not most:
        return "-"
    said = "{:.0f}".format(statistics.median(most))
    return said + (", {:.1%}".format(statistics.median(beyond)) if beyond else "")


def ratios_of(case, name):
    """One of `RATIOS` in each repeat."""
    figure, above, below = RATIOS[name]
    return ratios(values(case, above, figure), values(case, below, figure))


def ratio_row(case):
    """A line with the ratios of a case."""
    return row(case["title"], *(_cell(ratios_of(case, name)) for name in RATIOS))


def short_row(case):
    """A line with the medians of `SHORT`."""
    found = [ratios_of(case, name) for name in SHORT.values()]
    medians = ("{:.2f}".format(statistics.median(one)) if one else "-" for one in found)
    return row(case["title"], *medians)


def others(cases):
    """One sentence on how quiet the machine was."""
    runs = [run for case in cases for repeat in case["repeats"] for run in repeat.values()]
    most = max(run["others_processors"] for run in runs)
    return f"Processors that others kept busy while a mode was measured: at most {most:.2f}."


def _cell(found, form="{:.2f}"):
    return spread(found, form) if found else "-"
