"""The demo's report: one page, which contains the parity report's section, and one JSON file."""

import html
import json
import os
import pathlib
import platform
from typing import Any, Dict

import parity
from semisync.common.files import write_text
from semisync.demo import figures

_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>semisync demo: {verdict}</title>
<style>
{style}
.parity .modes svg {{ max-width: 100%; }}
.parity .modes svg text {{ stroke: none; }}
</style>
</head>
<body class="parity-page">
<section class="parity">
<h1 class="title">semisync demo</h1>
<p>{story}</p>
{table}
<div class="pair modes">
{figures}
</div>
<p>{reading}</p>
</section>
{section}
</body>
</html>
"""


def write(folder: pathlib.Path, record: Dict[str, Any], comparison: "parity.Comparison") -> str:
    """Writes report.html, modes.svg and report.json, the JSON last; returns the page's path."""
    modes, optimum = record["modes"], record["data"]["bayes_auc"]
    svgs = [figures.draw([panel], modes, optimum) for panel in figures.PANELS]
    page = _PAGE.format(
        verdict=comparison.verdict.value,
        style=parity.stylesheet(),
        story=html.escape(_story(record)),
        table=_table(record),
        figures="\n".join(f"<figure>{svg[svg.index('<svg') :]}</figure>" for svg in svgs),
        reading=html.escape(_reading(record)),
        section=parity.report_section(
            comparison,
            "Did the conversion to TorchRec lose anything?",
            _provenance(record),
            heading_level=2,
        ),
    )
    for name, text in (
        ("modes.svg", figures.draw(figures.PANELS, modes, optimum)),
        ("report.html", page),
        ("report.json", json.dumps(record, indent=2, allow_nan=False) + "\n"),
    ):
        write_text(folder / name, text)
    return str(folder / "report.html")


def _story(record: Dict[str, Any]) -> str:
    settings, data = record["settings"], record["data"]
    return (
        f"A DeepFM with BatchNorm was trained on {data['rows']['train']:,} rows ({data['name']}) "
        f"by {settings['batches_per_step']} workers and {settings['partitions']} parameter "
        f"servers, {settings['batches']:,} batches of {settings['batch']} in each mode, with the "
        f"same Adagrad. {settings['slow_share']:.0%} of the batches took "
        f"{settings['slow_factor']} times as long as the others. Each model was evaluated on "
        f"{data['rows']['held_out']:,} later rows."
    )


def _reading(record: Dict[str, Any]) -> str:
    modes = record["modes"]
    pace = {name: mode["batches_per_second"] for name, mode in modes.items()}
    ours = pace["semi-sync"]
    return (
        f"Semi-sync ran at {ours / pace['async']:.2f} times the pace of asynchronous training and "
        f"{ours / pace['native-sync']:.2f} times that of SyncReplicasOptimizer. A step of the "
        "asynchronous mode is one local batch, a step of the other two a global batch, with the "
        "same learning rate: their AUCs answer different questions. SyncReplicasOptimizer also "
        "divides an id's gradient by the number of batches that met it, which makes larger steps "
        "on rare ids than the global batch would; semi-sync divides by the global batch."
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
        "machine": f"{platform.machine()}, {os.cpu_count()} CPUs",
    }
