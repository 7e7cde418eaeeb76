"""The demo's report: one page and one JSON file, the parity report's section within."""

import html
import io
import json
import os
import pathlib
import platform
from typing import Any, Dict

import parity

_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>semisync demo: {verdict}</title>
<style>
{style}
.parity figure svg {{ max-width: 100%; height: auto; }}
</style>
</head>
<body class="parity-page">
<section class="parity">
<h1 class="title">semisync demo</h1>
<p>{story}</p>
{table}
<figure><figcaption>Pace, staleness and quality of the three modes</figcaption>
{figure}</figure>
<p>{reading}</p>
</section>
{section}
</body>
</html>
"""


def write(folder: pathlib.Path, record: Dict[str, Any], comparison: "parity.Comparison") -> str:
    """Writes report.html, modes.svg and report.json, the JSON last; returns the page's path."""
    figure = modes_figure(record["modes"], record["data"]["bayes_auc"])
    page = _PAGE.format(
        verdict=comparison.verdict.value,
        style=parity.stylesheet(),
        story=html.escape(_story(record)),
        table=_table(record),
        figure=figure[figure.index("<svg") :],
        reading=html.escape(_reading(record)),
        section=parity.report_section(
            comparison,
            "Did the conversion to TorchRec lose anything?",
            _provenance(record),
            heading_level=2,
        ),
    )
    for name, text in (
        ("modes.svg", figure),
        ("report.html", page),
        ("report.json", json.dumps(record, indent=2, allow_nan=False) + "\n"),
    ):
        beside = folder / ("." + name)
        beside.write_text(text, encoding="utf-8")
        os.replace(beside, folder / name)
    return str(folder / "report.html")


def modes_figure(modes: Dict[str, Dict[str, Any]], bayes_auc: Any) -> str:
    """Three panels, an SVG document: batches a second, staleness, AUC on the held-out rows."""
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    names = list(modes)
    colours = dict(zip(names, ("#8a8a8a", "#c4671b", "#1f5fa8")))
    with plt.rc_context({"svg.fonttype": "none", "font.size": 10, "svg.hashsalt": "semisync"}):
        figure, (pace, late, quality) = plt.subplots(1, 3, figsize=(11, 3.2), layout="tight")
        bars = pace.bar(
            names, [modes[n]["batches_per_second"] for n in names], color=list(colours.values())
        )
        pace.bar_label(bars, fmt="%.1f")
        pace.set_title("batches a second")
        for name in names:
            counts = {int(k): v for k, v in modes[name]["staleness"]["histogram"].items()}
            total = sum(counts.values())
            shares = [counts.get(s, 0) / total for s in range(max(counts) + 1)]
            late.plot(shares, marker="o", markersize=4, color=colours[name], label=name)
        late.set_title("share of batches by staleness, in steps")
        late.legend(frameon=False)
        aucs = [modes[n]["auc"] for n in names]
        quality.scatter(names, aucs, color=list(colours.values()), zorder=3)
        for name, value in zip(names, aucs):
            quality.annotate(
                f"{value:.4f}", (name, value), (0, 8), textcoords="offset points", ha="center"
            )
        quality.set_title("AUC on the held-out rows")
        quality.margins(0.25, 0.3)
        if bayes_auc is not None:
            quality.axhline(bayes_auc, linestyle="--", color="#444444")
            quality.annotate("optimum", (0, bayes_auc), (0, 3), textcoords="offset points")
        for panel in (pace, late, quality):
            panel.spines[["top", "right"]].set_visible(False)
        text = io.StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None})
        plt.close(figure)
    return text.getvalue()


def _story(record: Dict[str, Any]) -> str:
    settings, data = record["settings"], record["data"]
    return (
        f"A DeepFM with BatchNorm was trained on {data['rows']['train']:,} rows of {data['name']} "
        f"by {settings['batches_per_step']} workers and {settings['partitions']} parameter "
        f"servers, {settings['batches']:,} batches of {settings['batch']} in each mode, with the "
        f"same Adagrad. {settings['slow_share']:.0%} of the batches took "
        f"{settings['slow_factor']} times as long as the others. Each model was judged on "
        f"{data['rows']['held_out']:,} later rows."
    )


def _reading(record: Dict[str, Any]) -> str:
    modes = record["modes"]
    pace = {name: mode["batches_per_second"] for name, mode in modes.items()}
    ours = pace["semi-sync"]
    return (
        f"Semi-sync ran at {ours / pace['async']:.2f} times the pace of asynchronous training and "
        f"{ours / pace['native-sync']:.2f} times that of SyncReplicasOptimizer. A step of the "
        "asynchronous mode is one local batch, a step of the other two a global batch: with the "
        "learning rate unchanged, compare the AUC of semi-sync with that of native-sync."
    )


def _table(record: Dict[str, Any]) -> str:
    base = record["modes"]["async"]["batches_per_second"]
    rows = "".join(
        f'<tr><th scope="row">{name}</th><td>{mode["batches_per_second"]:.1f}</td>'
        f"<td>{mode['batches_per_second'] / base:.2f}</td>"
        f"<td>{mode['staleness']['mean']:.2f}</td><td>{mode['staleness']['max']}</td>"
        f"<td>{mode['auc']:.4f}</td></tr>"
        for name, mode in record["modes"].items()
    )
    head = ("mode", "batches/s", "x async", "mean staleness", "largest", "held-out AUC")
    return (
        f"<table><thead><tr>{''.join(f'<th>{text}</th>' for text in head)}</tr></thead>"
        f"{rows}</table>"
    )


def _provenance(record: Dict[str, Any]) -> Dict[str, Any]:
    return {
        "data": record["data"],
        "settings": record["settings"],
        "conversion": record["converted"],
        "python": platform.python_version(),
        "machine": f"{platform.machine()}, {os.cpu_count()} processors",
    }
