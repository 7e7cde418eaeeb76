"""Markdown of the runs: what each mode loses or gains against sync, paired by seed.

A mode of which a run on the test split diverged has no figures, only how many did; in the search
the settings that diverged are counted.
"""

import collections
import functools
import math

from benchmarks.harness.seeds import paired
from benchmarks.mitigations_parts import lateness, search
from benchmarks.tables import table

REFERENCE = "sync"
_SIMULATED = 400  # global steps, for the pace


def markdown(lines):
    """Four tables: all blocks in one, at the end of the runs, along them, and of the search."""
    blocks = collections.OrderedDict()
    tried = collections.OrderedDict()
    for line in sorted(lines, key=lambda line: (line["data"], line["optimizer"], line["size"])):
        block = "{data}, {optimizer}, M = {size}".format(**line)
        if line["split"] == "test":
            modes = blocks.setdefault(block, collections.OrderedDict())
            modes.setdefault(line["mode"], {})[line["seed"]] = line
        elif line["seed"] in search.SEEDS[line["data"]]:
            modes = tried.setdefault(block, collections.OrderedDict())
            settings = modes.setdefault(line["mode"], {})
            settings.setdefault((line["rate"], line["strength"]), []).append(line["auc"])
    details = (_END, _end, blocks), (_ALONG, _along, blocks), (_TRIED, _best, tried)
    return "\n\n".join([_overview(blocks), *(_table(*detail) for detail in details)]) + "\n"


def _overview(blocks):
    """AUC minus sync of each mode in each block, and half the width of its interval."""
    rows = []
    for mode in dict.fromkeys(mode for modes in blocks.values() for mode in modes):
        if mode != REFERENCE:
            cells = [_overall(modes, mode) if mode in modes else "" for modes in blocks.values()]
            rows.append([mode, *cells])
    return table(["mode", *blocks], rows)


def _overall(modes, mode):
    difference = _paired(modes, mode, lambda line: line["auc"])
    if difference is None:
        return ""
    if difference.low is None:
        return "{:+.4f}".format(difference.mean)
    return "{:+.4f} ± {:.4f}".format(difference.mean, (difference.high - difference.low) / 2)


def _table(columns, cells, blocks):
    """One row per mode of each block."""
    rows = [[block, mode, *cells(modes, mode)] for block, modes in blocks.items() for mode in modes]
    return table(columns, rows)


_END = (
    *("data, optimizer, M", "mode", "rate", "strength", "mean staleness", "seeds", "AUC"),
    *("AUC minus sync", "95 % interval", "log loss minus sync", "95 % interval"),
)


def _end(modes, mode):
    seeds = modes[mode]
    one = next(iter(seeds.values()))
    diverged = _diverged(seeds)
    cells = ["{:g}".format(one["rate"]), _number(one["strength"])]
    cells += ["{:.2f}".format(_mean(seeds, "staleness")), _counted(len(seeds), diverged)]
    cells.append("" if diverged else "{:.5f}".format(_mean(seeds, "auc")))
    for measure in ("auc", "log_loss"):
        cells += _difference(modes, mode, lambda line, measure=measure: line[measure])
    return cells


_ALONG = (
    *("data, optimizer, M", "mode", "AUC minus sync after a quarter", "a half", "three quarters"),
    *("all", "training loss minus sync in the first quarter", "second", "third", "last"),
)


def _along(modes, mode):
    cells = []
    for measure in ("auc", "training"):
        for quarter in (1, 2, 3, 4):
            value = functools.partial(_at, quarter=quarter, measure=measure)
            cells.append(_difference(modes, mode, value)[0])
    return cells


_TRIED = (
    *("data, optimizer, M", "mode", "settings tried", "rate", "strength", "validation AUC"),
    "minus sync",
)


def _best(modes, mode):
    means = {
        name: {setting: search.mean(aucs) for setting, aucs in settings.items()}
        for name, settings in modes.items()
    }
    tried = means[mode]
    rate, strength = max(tried, key=tried.get)
    best = tried[rate, strength]
    cells = [_counted(len(tried), list(tried.values()).count(-math.inf))]
    if not math.isfinite(best):
        return [*cells, "", "", "", ""]
    cells += ["{:g}".format(rate), _number(strength), "{:.5f}".format(best)]
    of_sync = max(means.get(REFERENCE, {}).values(), default=-math.inf)
    if mode == REFERENCE or not math.isfinite(of_sync):
        return [*cells, ""]
    return [*cells, "{:+.5f}".format(best - of_sync)]


def _at(line, quarter, measure):
    """A measure when so many quarters of the run are done."""
    curve = line["curve"]
    return curve[len(curve) * quarter // 4 - 1][measure]


def _paired(modes, mode, value):
    """Of mode minus sync, over the seeds of both; None for sync, and where a run diverged."""
    if mode == REFERENCE or REFERENCE not in modes:
        return None
    if _diverged(modes[mode]) or _diverged(modes[REFERENCE]):
        return None
    pair = [{seed: value(line) for seed, line in modes[name].items()} for name in (mode, REFERENCE)]
    return paired(*pair) if set(pair[0]) & set(pair[1]) else None


def _difference(modes, mode, value):
    """[mean, interval] of mode minus sync as text."""
    difference = _paired(modes, mode, value)
    return ["", ""] if difference is None else difference.cells


def _diverged(seeds):
    return sum(line["auc"] is None for line in seeds.values())


def _counted(count, diverged):
    return "{}, {} diverged".format(count, diverged) if diverged else str(count)


def _mean(seeds, name):
    return sum(line[name] for line in seeds.values()) / len(seeds)


def _number(value):
    return "" if value is None else "{:g}".format(value)


def paces(sizes, wanted):
    """Markdown: mean staleness and pace of the simulated cluster, with each bound of `wanted`."""
    rows = []
    for size in sizes:
        base = lateness.asynchronous(_SIMULATED * size, 1).batches_per_second
        bounds = [("semi-sync", None)] + [("mean staleness %g" % one, one) for one in wanted]
        for mode, bound in [*bounds, ("sync", 0.0)]:
            trace = lateness.semi_synchronous(_SIMULATED, size, 1, bound)
            pace = trace.batches_per_second
            shown = "{:.2f} {:.1f} {:.2f}".format(trace.mean, pace, pace / base)
            rows.append([size, mode, *shown.split()])
    return table("M | mode | mean staleness | batches/s | x asynchronous", rows)
