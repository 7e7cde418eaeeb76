"""report.html of a migration: verdict, parts, the carried tensors, open work, the AUC.

The styles are those of `semisync parity`'s reports, and so is the section on the AUC. The page is
whole in itself: no script, nothing fetched.
"""

from typing import List, Sequence

import parity
from parity.report.html import page as whole_page
from semisync.common.errors import MissingExtra
from semisync.common.markup import in_html
from semisync.migration.following import Next
from semisync.migration.run import Migration
from semisync.migration.verdict import Part, State, Verdict
from semisync.migration.words import carried, left_to_do

STYLE = """.parity .parts-of td { text-align: left; }
.parity .parts-of p { margin: 0; font-size: .9em; }
.parity .left li { margin: .4rem 0; max-width: 44rem; overflow-wrap: anywhere; }
.parity .parts-of code { overflow-wrap: anywhere; }
.parity .state { font-weight: 600; white-space: nowrap; }
.parity .state.passed { color: var(--good); }
.parity .state.failed { color: var(--bad); }
.parity .state.open { color: var(--open); }
"""

_CLASS = {  # of the verdict's box, as parity's stylesheet has them
    Verdict.MIGRATED: "EQUIVALENT",
    Verdict.NOT_MIGRATED: "NOT_EQUIVALENT",
    Verdict.INCONCLUSIVE: "INCONCLUSIVE",
}
_MARK = {Verdict.MIGRATED: "✓", Verdict.NOT_MIGRATED: "✗", Verdict.INCONCLUSIVE: "?"}
_STATE = {State.PASSED: "passed", State.FAILED: "failed"}


def page(migration: Migration, after: Sequence[Next] = ()) -> str:
    """The whole page, with the commands that come after the migration."""
    title = "{} - {}".format(_name(migration), migration.settings.checkpoint)
    return whole_page(title, section(migration, after=after), STYLE)


def section(migration: Migration, heading_level: int = 1, after: Sequence[Next] = ()) -> str:
    """The report as <section>s, for a page that has parity's stylesheet and STYLE."""
    part = heading_level + 1
    blocks = [
        '<section class="parity">',
        '<h{0} class="title">Migration of {1}</h{0}>'.format(
            heading_level, in_html(migration.settings.checkpoint)
        ),
        _verdict(migration),
        '<h{0} class="part">What was compared</h{0}>'.format(part),
        _parts(migration.parts),
        '<h{0} class="part">What was carried</h{0}>'.format(part),
        _table([(name, in_html(text)) for name, text in carried(migration)]),
        '<h{0} class="part">What is left to do</h{0}>'.format(part),
        '<ul class="left">',
        *("<li>{}</li>".format(in_html(text)) for text in left_to_do(migration)),
        "</ul>",
        *_after(after, part),
        "</section>",
    ]
    if migration.comparison is not None:
        provenance = {**migration.provenance, "made from": migration.identities._asdict()}
        title = "Is the AUC the same?"
        try:
            blocks.append(
                parity.report_section(
                    migration.comparison, title, provenance, heading_level=heading_level + 1
                )
            )
        except MissingExtra as error:  # the verdict is reached
            blocks.append("<p>The figures of the AUC are left out: {}.</p>".format(in_html(error)))
    return "\n".join(blocks)


def _after(after: Sequence[Next], level: int) -> List[str]:
    if not after:
        return []
    commands = [(one.what, "<code>{}</code>".format(in_html(one.command))) for one in after]
    return ['<h{0} class="part">What comes next</h{0}>'.format(level), _table(commands)]


def _name(migration: Migration) -> str:
    return migration.verdict.value.replace("_", " ")


def _verdict(migration: Migration) -> str:
    verdict = migration.verdict
    return '<div class="verdict {}"><strong>{} {}</strong><p>{}</p></div>'.format(
        _CLASS[verdict], _MARK[verdict], _name(migration), in_html(migration.sentence)
    )


def _parts(parts: List[Part]) -> str:
    rows = []
    for part in parts:
        state = '<span class="state {}">{}</span>'.format(
            _STATE.get(part.state, "open"), part.state.value
        )
        finding = "".join("<p>{}</p>".format(in_html(line)) for line in part.finding.splitlines())
        rows.append((part.compared[0].upper() + part.compared[1:], state + finding))
    return _table(rows)


def _table(rows: "List[tuple]") -> str:
    cells = "".join(
        '<tr><th scope="row">{}</th><td class="text">{}</td></tr>'.format(in_html(name), cell)
        for name, cell in rows
    )
    return '<table class="parts-of"><tbody>{}</tbody></table>'.format(cells)
