"""The status as a page: whole in itself, without a script, legible on a telephone.

The browser fetches it anew every REFRESH seconds. Everything that a member says of itself is
escaped, and the server's Content-Security-Policy allows nothing but the page's own style.
"""

from html import escape
from typing import Any, Dict, List, Tuple

from semisync.cluster.status.document import QUIET, age
from semisync.cluster.status.text import number, shares

REFRESH = 5  # seconds
_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="refresh" content="{refresh}">
<title>{job} - semisync</title>
<style>
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 44rem; margin: 0 auto; padding: 1rem; }}
h1 {{ font-size: 1.3rem; margin: 0; overflow-wrap: anywhere; }}
h2 {{ font-size: 1.05rem; margin: 1.5rem 0 .3rem; }}
p {{ margin: .3rem 0; }}
dl {{ display: grid; grid-template-columns: repeat(auto-fill, minmax(9rem, 1fr)); gap: .8rem;
  margin: 1rem 0; }}
dt {{ font-size: .8rem; opacity: .75; }}
dd {{ margin: 0; font-size: 1.3rem; font-variant-numeric: tabular-nums; overflow-wrap: anywhere; }}
table {{ border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }}
td, th {{ text-align: left; padding: .15rem .6rem .15rem 0;
  overflow-wrap: anywhere; font-weight: normal; }}
td.n {{ text-align: right; }}
td.b {{ width: 60%; }}
.bar {{ background: #3b7dd8; height: .8rem; border-radius: 2px; min-width: 1px; }}
.bad {{ color: #b3261e; font-weight: 600; }}
@media (prefers-color-scheme: dark) {{ .bad {{ color: #ff8a80; }} }}
</style>
</head>
<body>
<h1>{job}</h1>
{body}
</body>
</html>
"""


def page(document: Dict[str, Any]) -> str:
    """The document as an HTML page."""
    parts: List[str] = []
    cluster, training = document["cluster"], document["training"]
    if cluster is not None:
        parts += _alarms(cluster)
    parts.append(_figures(cluster, training))
    if training is None:
        parts.append("<p>The chief has said nothing so far.</p>")
    else:
        parts += _training(training, age(document) or 0.0)
    if cluster is not None:
        parts.append(_table("Members", sorted(cluster["members"].items())))
    return _PAGE.format(refresh=REFRESH, job=escape(document["job"]), body="\n".join(parts))


def _alarms(cluster: Dict[str, Any]) -> List[str]:
    said = []
    if cluster["outcome"]:
        return ["<p>It has ended: {}.</p>".format(escape(cluster["outcome"]))]
    if cluster["waiting_for"]:
        said.append("Waiting for {}".format(", ".join(cluster["waiting_for"])))
    elif cluster["leader"] is None:
        said.append("Nobody leads")
    return ['<p class="bad">{}.</p>'.format(escape(sentence)) for sentence in said]


def _figures(cluster: Any, training: Any) -> str:
    figures: List[Tuple[str, str]] = []
    if training is not None:
        figures += [
            ("global step", number(training["global_step"])),
            ("global steps/s", number(training["steps_per_second"])),
            ("batches/s", number(training["batches_per_second"])),
            ("batches per step", number(training["batches_per_step"])),
        ]
    if cluster is not None:
        figures += [
            ("leader", cluster["leader"] or "nobody"),
            ("epoch", number(cluster["epoch"])),
            ("generation", number(cluster["generation"])),
        ]
    cells = ["<div><dt>{}</dt><dd>{}</dd></div>".format(n, escape(v)) for n, v in figures]
    return "<dl>{}</dl>".format("".join(cells))


def _training(training: Dict[str, Any], seconds: float) -> List[str]:
    parts = []
    if seconds > QUIET:
        sentence = "The chief has said nothing for {:.0f} s.".format(seconds)
        parts.append('<p class="bad">{}</p>'.format(sentence))
    rows = "".join(
        '<tr><th>{}</th><td class="n">{:.1f} %</td><td class="b"><div class="bar" '
        'style="width:{:.1f}%"></div></td></tr>'.format(escape(steps), 100 * share, 100 * share)
        for steps, share in shares(training["staleness"])
    )
    if rows:
        parts.append("<h2>Staleness, global steps</h2><table>{}</table>".format(rows))
    fates = [(name, number(count)) for name, count in training["fates"].items()]
    silence = [(name, "{:.0f} s ago".format(s)) for name, s in training["workers"].items()]
    return [*parts, _table("Batches", fates), _table("Workers, last heard of", silence)]


def _table(title: str, rows: List[Tuple[str, str]]) -> str:
    cells = "".join(
        '<tr><th>{}</th><td class="n">{}</td></tr>'.format(escape(name), escape(value))
        for name, value in rows
    )
    return "<h2>{}</h2><table>{}</table>".format(title, cells or "<tr><td>none</td></tr>")
