"""The summary as Markdown: median [smallest, largest] of the repeats."""

from benchmarks.tables import head, row

from .summary import RATIOS

# What a reader wants to know first: column, ratio.
SHORT = (
    ("x asynchronous", "semi-sync / async"),
    ("x native sync", "semi-sync / native-sync"),
    ("parameter servers' CPU, x asynchronous", "PS CPU semi-sync / async"),
)
# Column, figure, digits.
COLUMNS = (
    ("batches/s", "batches_per_second", 1),
    ("CPU, ms per batch", "cpu_per_batch", 2),
    ("of it PS", "ps_cpu_per_batch", 2),
    ("chief", "chief_cpu_per_batch", 2),
    ("other workers", "workers_cpu_per_batch", 2),
    ("PS memory, MB", "ps_memory_mb", 0),
    ("grown by, MB", "ps_memory_growth_mb", 0),
    ("start-up, s", "startup_seconds", 2),
    ("M begun to first update, s", "first_update_seconds", 2),
    ("mean staleness", "staleness_mean", 2),
)


def rows(case):
    """A line per mode of a case (see `summary.of_case`)."""
    for mode, figures in case["modes"].items():
        cells = [_cell(figures[f], figures["spread"][f], digits) for _, f, digits in COLUMNS]
        yield row(case["title"], mode, *cells, _late(figures))


def _late(figures):
    """The largest staleness, and the share beyond the bound where there is one."""
    largest, beyond = figures["staleness_max"], figures["staleness_beyond_bound"]
    if largest is None:
        return "-"
    return f"{largest:.0f}" + ("" if beyond is None else f", {beyond:.1%}")


def ratio_row(case):
    """A line with the ratios of a case."""
    cells = [case["title"]]
    for name, *_ in RATIOS:
        ratio = case["ratios"].get(name)
        cells.append(_cell(ratio["median"], (ratio["min"], ratio["max"]), 2) if ratio else "-")
    return row(*cells)


def short_row(case):
    """A line with the medians of `SHORT`."""
    ratios = [case["ratios"].get(name) for _, name in SHORT]
    return row(case["title"], *(f"{one['median']:.2f}" if one else "-" for one in ratios))


def others(cases):
    """One sentence on how quiet the machine was."""
    raw = [run for case in cases for mode in case["modes"].values() for run in mode["repeats"]]
    most = max(run["others_processors"] for run in raw)
    return f"Processors that others kept busy while a mode was measured: at most {most:.2f}."


def _cell(median, bounds, digits):
    if median is None:
        return "-"
    low, high = bounds
    return f"{median:.{digits}f} [{low:.{digits}f}, {high:.{digits}f}]"


HEAD = head(["case", "mode", *[name for name, *_ in COLUMNS], "max, beyond the bound"])
SHORT_HEAD = head(["case", *[name for name, _ in SHORT]])
RATIO_HEAD = head(["case", *[name for name, *_ in RATIOS]])
