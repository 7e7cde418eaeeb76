"""The demo's report: one page, which contains the migration's report, and one JSON file.

Its figures are the pace, staleness and quality of the modes, a panel each.
"""

import io
import json
import pathlib
from typing import Any, Callable, Dict, Optional, Sequence

from parity.report.html import page as whole_page
from semisync.common.files import write_text
from semisync.common.markup import in_html
from semisync.demo import finding
from semisync.migration import page as migration_page
from semisync.migration import report as migration_report
from semisync.migration.run import Migration

COLOURS = {
    "async": "#8a8a8a",
    "native-sync": "#c4671b",
    "semi-sync": "#1f5fa8",
    "balanced": "#7b4fa3",
    "sync": "#3b8a4e",
}
_Modes = Dict[str, Dict[str, Any]]
_Panel = Callable[[Any, _Modes, Optional[float]], None]
_STYLE = """.parity .modes svg { max-width: 100%; }
.parity .modes svg text { stroke: none; }
"""
_SECTION = """<section class="parity">
<h1 class="title">semisync demo</h1>
<p>{story}</p>
{table}
<p class="finding">{finding}</p>
<p>{reading}</p>
<div class="pair modes">
{figures}
</div>
</section>
"""


def of_migration(migration: Migration) -> Dict[str, Any]:
    """The migration's part of the JSON; the comparison of the AUC stands beside the rest."""
    record = migration_report.record(migration)
    return {"migration": record, "parity": record.pop("parity")}


def write(folder: pathlib.Path, record: Dict[str, Any], migration: Migration) -> str:
    """Writes report.html, modes.svg and report.json, the JSON last; returns the page's path."""
    modes, optimum = record["modes"], record["data"]["bayes_auc"]
    svgs = [_draw([panel], modes, optimum) for panel in PANELS]
    section = _SECTION.format(
        story=in_html(_story(record)),
        table=_table(record),
        figures="\n".join(f"<figure>{svg[svg.index('<svg') :]}</figure>" for svg in svgs),
        finding=in_html(finding.sentence(modes)),
        reading=in_html(_reading(record)),
    )
    page = whole_page(
        "semisync demo: " + migration.verdict.value.replace("_", " "),
        section + migration_page.section(migration, heading_level=2),
        migration_page.STYLE + _STYLE,
    )
    for name, text in (
        ("modes.svg", _draw(PANELS, modes, optimum)),
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
        f"servers. Each mode trained the same {settings['batches']:,} batches of "
        f"{settings['batch']} rows, in time order, each batch handed out once, with the "
        f"same Adam (rate {settings['learning_rate']:g}). {settings['slow_share']:.0%} of the "
        f"batches took {settings['slow_factor']} times as long as the others. Each model was "
        f"evaluated on {data['rows']['held_out']:,} later rows."
    )


def _reading(record: Dict[str, Any]) -> str:
    batches = record["settings"]["batches"]
    lost = {name: batches - mode["counted"] for name, mode in record["modes"].items()}
    dropped = ", ".join(f"{count} in {name}" for name, count in lost.items() if count > 0)
    return (
        "The learning rate is the one that exact "
        "global batches of the generated log prefer on its last days of training "
        "(benchmarks/demo_search.py); no mode has a rate of its own. A step of the asynchronous "
        "mode is one local batch, of the others a global batch. TensorFlow's Adam updates a table "
        "by several operations; those of asynchronous workers interleave, which costs AUC beside "
        "the staleness. "
        f"Batches that came too late to change the model: {dropped or 'none'}."
    )


def _table(record: Dict[str, Any]) -> str:
    base = record["modes"]["async"]["batches_per_second"]
    rows = "".join(_row(name, mode, base) for name, mode in record["modes"].items())
    head = ["mode", "batches/s", "x async", "mean staleness", "largest", "held-out AUC"]
    head += ["minus sync", "95 % interval"]
    return (
        f"<table><thead><tr>{''.join(f'<th>{text}</th>' for text in head)}</tr></thead>"
        f"{rows}</table>"
    )


def _row(name: str, mode: Dict[str, Any], base: float) -> str:
    pace, staleness, minus = mode["batches_per_second"], mode["staleness"], mode.get("minus_sync")
    cells = [f"{pace:.1f}", f"{pace / base if base else 0:.2f}"]
    cells += [f"{staleness['mean']:.2f}", str(staleness["max"]), f"{mode['auc']:.4f}"]
    if minus:
        cells += [f"{minus['delta']:+.4f}", f"{minus['low']:+.4f} to {minus['high']:+.4f}"]
    else:
        cells += ["", ""]
    return f'<tr><th scope="row">{name}</th>{"".join(f"<td>{c}</td>" for c in cells)}</tr>'


def pace(axes: Any, modes: _Modes, optimum: Optional[float]) -> None:
    """Batches per second, of all workers together."""
    bars = axes.bar(
        [_broken(name) for name in modes],
        [mode["batches_per_second"] for mode in modes.values()],
        color=[COLOURS[name] for name in modes],
    )
    axes.bar_label(bars, fmt="%.1f")
    axes.set_title("batches per second")


def staleness(axes: Any, modes: _Modes, optimum: Optional[float]) -> None:
    """The share of batches by staleness."""
    for name, mode in modes.items():
        counts = {int(steps): count for steps, count in mode["staleness"]["histogram"].items()}
        shares = [counts.get(s, 0) / sum(counts.values()) for s in range(max(counts) + 1)]
        axes.plot(shares, marker="o", markersize=4, color=COLOURS[name], label=name)
    axes.set_title("share of batches by staleness, in steps")
    axes.legend(frameon=False)


def _quality(axes: Any, modes: _Modes, optimum: Optional[float]) -> None:
    """The held-out AUC of each mode, and the best possible where it is known."""
    for name, mode in modes.items():
        axes.scatter([_broken(name)], [mode["auc"]], color=COLOURS[name], zorder=3)
        axes.annotate(
            f"{mode['auc']:.4f}",
            (_broken(name), mode["auc"]),
            (0, 8),
            textcoords="offset points",
            ha="center",
        )
    axes.set_title("AUC on the held-out rows")
    axes.margins(0.25, 0.3)
    if optimum is not None:
        axes.axhline(optimum, linestyle="--", color="#444444")
        axes.annotate("optimum", (0, optimum), (0, 3), textcoords="offset points")


def _broken(name: str) -> str:
    """A mode's name in two lines, if it has two words: there are many side by side."""
    return name.replace("-", "-\n")


PANELS: Sequence[_Panel] = (pace, staleness, _quality)


def _draw(panels: Sequence[_Panel], modes: _Modes, optimum: Optional[float]) -> str:
    """The panels side by side, an SVG document whose text is text."""
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    # A salt for the ids, which would be random, and no date: equal figures have equal bytes.
    with plt.rc_context({"svg.fonttype": "none", "font.size": 10, "svg.hashsalt": "semisync"}):
        figure, grid = plt.subplots(
            1, len(panels), figsize=(4.2 * len(panels), 3.2), layout="tight", squeeze=False
        )
        for panel, axes in zip(panels, grid[0]):
            panel(axes, modes, optimum)
            axes.spines[["top", "right"]].set_visible(False)
        text = io.StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None})
        plt.close(figure)
    return text.getvalue()
