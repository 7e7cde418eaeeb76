"""The tables: each mode's AUC over the seeds, its difference from sync, its staleness."""

import statistics

from benchmarks.harness.seeds import paired
from benchmarks.tables import table

REFERENCE = "sync"


def by_seed(results):
    """Dict of mode -> dict of seed -> AUC, modes in the order of their first result."""
    aucs = {}
    for result in results:
        aucs.setdefault(result["mode"], {})[result["seed"]] = result["auc"]
    return aucs


def differences(results):
    """Dict of mode -> seeds.Difference, for every mode except sync."""
    aucs = by_seed(results)
    sync = aucs.get(REFERENCE, {})
    pairs = {
        mode: seeds for mode, seeds in aucs.items() if mode != REFERENCE and set(seeds) & set(sync)
    }
    return {mode: paired(seeds, sync) for mode, seeds in pairs.items()}


def paces(results):
    """Dict of mode -> batches per second, a mean over the seeds; without runs in one process."""
    found = {}
    for result in results:
        if "batches_per_second" in result:
            found.setdefault(result["mode"], []).append(result["batches_per_second"])
    return {mode: statistics.mean(values) for mode, values in found.items()}


def summary_table(results, settings):
    """Markdown: a line per mode with its AUC, difference from sync, staleness and pace."""
    seeds = len({result["seed"] for result in results})
    columns = (
        "mode | AUC, mean of {} seeds | sd of seeds | minus sync, seed by seed | 95 % interval"
        " | log loss | mean staleness, global steps | batches/s".format(seeds)
    )
    rows = []
    from_sync = differences(results)
    for mode, aucs in by_seed(results).items():
        values = list(aucs.values())
        sd = "{:.5f}".format(statistics.stdev(values)) if len(values) > 1 else ""
        cells = [mode, "{:.5f}".format(statistics.mean(values)), sd]
        cells += from_sync[mode].cells if mode in from_sync else ["", ""]
        of_mode = [result for result in results if result["mode"] == mode]
        cells.append("{:.5f}".format(statistics.mean(result["log_loss"] for result in of_mode)))
        runs = [result for result in of_mode if "staleness" in result]
        if runs:
            batches, total = _staleness(mode, runs, settings)
            cells.append("{:.2f}".format(sum(s * count for s, count in batches) / total))
            cells.append("{:.1f}".format(paces(runs)[mode]))
        rows.append(cells + [""] * (8 - len(cells)))
    return table(columns, rows)


def _staleness(mode, runs, settings):
    """[(staleness in global steps, batches)] of all runs of a mode, and the sum of batches."""
    per_step = settings.batches_per_step if mode.startswith("async") else 1
    batches = [
        (staleness / per_step, count)
        for run in runs
        for staleness, count in run["staleness"].items()
    ]
    return batches, sum(count for _, count in batches)
