"""The figures of all repeats: median and spread, and ratios within each repeat."""

import statistics

# The ratios that are reported: name, figure, mode over mode.
RATIOS = (
    ("semi-sync / async", "batches_per_second", "semi-sync", "async"),
    ("semi-sync / native-sync", "batches_per_second", "semi-sync", "native-sync"),
    ("sync / native-sync", "batches_per_second", "sync", "native-sync"),
    ("CPU semi-sync / async", "cpu_per_batch", "semi-sync", "async"),
    ("CPU native-sync / async", "cpu_per_batch", "native-sync", "async"),
    ("PS CPU semi-sync / async", "ps_cpu_per_batch", "semi-sync", "async"),
    ("PS CPU semi-sync / native-sync", "ps_cpu_per_batch", "semi-sync", "native-sync"),
    ("PS CPU sync / async", "ps_cpu_per_batch", "sync", "async"),
    ("start-up semi-sync / native-sync", "startup_seconds", "semi-sync", "native-sync"),
)


def of_case(case, repeats):
    """The JSON object of one case.

    Args:
        case: a `cases.Case`.
        repeats: a list of dicts, mode -> `measures.figures`, one per repeat; the order of the keys
            is the order of the training.

    Returns:
        A dict: `name`, `title`, `cluster`, `modes`, `ratios`. A mode has the median of each figure,
        `spread` with its smallest and largest, and `repeats`, the raw figures; a ratio has
        `median`, `min`, `max` and `repeats`.
    """
    modes = {mode: _of_mode([repeat[mode] for repeat in repeats]) for mode in sorted(repeats[0])}
    ratios = {}
    for name, figure, above, below in RATIOS:
        if above in modes and below in modes:
            ratios[name] = ratio(repeats, figure, above, below)
    return {
        "name": case.name,
        "title": case.title,
        "cluster": dict(case._asdict(), model=case.model._asdict()),
        "order": [list(repeat) for repeat in repeats],
        "modes": modes,
        "ratios": ratios,
    }


def _of_mode(repeats):
    spreads = {figure: spread([repeat[figure] for repeat in repeats]) for figure in repeats[0]}
    medians = {figure: of and of["median"] for figure, of in spreads.items()}
    ranges = {figure: of and [of["min"], of["max"]] for figure, of in spreads.items()}
    return dict(medians, spread=ranges, repeats=repeats)


def ratio(repeats, figure, above, below):
    """The spread of a figure's ratio between two modes, each taken within one repeat."""
    pairs = [(repeat[above][figure], repeat[below][figure]) for repeat in repeats]
    return spread([a / b if a is not None and b else None for a, b in pairs])


def spread(values):
    """`median`, `min` and `max`, and the values as `repeats`; None where a value is missing."""
    if any(value is None for value in values):
        return None
    return {
        "median": statistics.median(values),
        "min": min(values),
        "max": max(values),
        "repeats": values,
    }
