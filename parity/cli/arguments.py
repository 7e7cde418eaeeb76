"""The arguments of `semisync parity`, as --help lists them; `checks` has which go together."""

import argparse
from typing import Any

from parity.gates import METRICS
from parity.io.text_format import add_text
from parity.report.junit import INCONCLUSIVE
from parity.stats.intervals import CONFIDENCE
from semisync.answers import add_json

_EXAMPLES = """examples:
  semisync parity scores.parquet --label y --baseline-score old --candidate-score new --out report
  semisync parity old.parquet new.parquet --key id --label y --baseline-score score --out report
  semisync parity day1.parquet --label y --baseline-score old --candidate-score new \\
    --partial day1.part
  semisync parity --merge day1.part day2.part --out report"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments."""
    parser.epilog = _EXAMPLES
    _declare_files(parser)
    _declare_columns(parser.add_argument_group("columns"))
    _declare_parts(parser.add_argument_group("figures beside the AUC of all rows"))
    _declare_verdict(parser.add_argument_group("the verdict"))
    _declare_diagnosis(parser.add_argument_group("why the models differ"))
    _declare_large(parser.add_argument_group("more rows than memory"))
    _declare_report(parser.add_argument_group("the report"))


def _declare_files(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "baseline",
        metavar="BASELINE",
        nargs="?",
        help="file, folder or pattern with the scores to match; - is standard input",
    )
    add("candidate", metavar="CANDIDATE", nargs="?", help="the candidate's file, if another one")
    add(
        "--baseline",
        dest="baseline_runs",
        metavar="FILE",
        nargs="+",
        help="instead of BASELINE: a file for each training run, joined by --key",
    )
    add(
        "--candidate",
        dest="candidate_runs",
        metavar="FILE",
        nargs="+",
        help="the same for the candidate",
    )
    add_text(parser)


def _declare_columns(group: Any) -> None:
    add = group.add_argument
    add("--label", metavar="COL", help="column of labels, 0 or 1")
    add("--baseline-score", metavar="COL", help="column of the baseline's scores")
    add(
        "--candidate-score",
        metavar="COL",
        help="column of the candidate's scores; with two files the baseline's name by default",
    )
    add(
        "--baseline-logit",
        metavar="COL",
        help="instead of --baseline-score: a column of logits, ranked as they are, so that large "
        "ones neither tie nor lack a log loss",
    )
    add("--candidate-logit", metavar="COL", help="the same for the candidate")
    add(
        "--key",
        metavar="COL",
        action="append",
        default=[],
        help="column that names each row once, the same in both files; given several times, the "
        "columns together; without it rows of two files belong together by their place",
    )
    add(
        "--allow-misses",
        action="store_true",
        help="leave out rows whose key is in one file only, instead of refusing them",
    )
    add("--weight", metavar="COL", help="column of sample weights")
    add(
        "--fill",
        metavar="COL=VALUE",
        action="append",
        default=[],
        help="replaces a missing value of the group, the day or a slice, which otherwise ends "
        "the run",
    )


def _declare_parts(group: Any) -> None:
    add = group.add_argument
    add("--group", metavar="COL", help="what rows share that vary together, such as the user")
    add("--day", metavar="COL", help="compare day by day as well, and test for drift")
    add(
        "--slice",
        metavar="COL",
        nargs="+",
        action="extend",
        default=[],
        help="compare within each value as well",
    )
    add("--worst", metavar="N", type=int, default=0, help="list the rows that differ most")
    add(
        "--show",
        metavar="COL",
        nargs="+",
        action="extend",
        default=[],
        help="columns to list with them, beside key, group, day and slices",
    )


def _declare_verdict(group: Any) -> None:
    add = group.add_argument
    add(
        "--margin",
        metavar="AUC",
        type=float,
        default=5e-4,
        help="the largest difference that does not matter (default: %(default)s)",
    )
    add(
        "--confidence",
        metavar="C",
        type=float,
        default=CONFIDENCE,
        help="of the intervals; each of the two one-sided tests is at (1 - C) / 2 (default: "
        "%(default)s)",
    )
    add(
        "--seed-sd",
        metavar="SD",
        type=float,
        help="of several runs against one: the standard deviation of the AUC between runs of the "
        "side that has one, as you know it; without it there is no verdict",
    )
    add(
        "--require",
        metavar="METRIC=MARGIN",
        nargs="+",
        action="extend",
        default=[],
        help=f"what must be equivalent as well, to within its own margin: {', '.join(METRICS)}; "
        "'auc>=0.7' in quotes: what either model's AUC must be at least",
    )
    add("--require-slices", action="store_true", help="every slice must be equivalent as well")
    add("--require-days", action="store_true", help="every day, and their mean, as well")
    add(
        "--verified",
        metavar="RECORD",
        help="what `semisync verify --json` printed of the candidate's conversion: it excludes "
        "rare faults, for which the rows may be too few",
    )
    add(
        "--inconclusive",
        choices=INCONCLUSIVE,
        default="fail",
        help="fail: exit code 2; warn: exit code 0 and a warning on stderr (default: %(default)s)",
    )


def _declare_diagnosis(group: Any) -> None:
    """Options that help to find the cause of a difference."""
    add = group.add_argument
    add(
        "--ids",
        metavar="COL[=TABLE]",
        nargs="+",
        action="extend",
        default=[],
        help="columns that embedding tables are looked up with, to diagnose a difference",
    )
    add(
        "--baseline-model",
        metavar="PATH",
        help="to diagnose a difference: a checkpoint, a converted directory or a .yaml of settings",
    )
    add("--candidate-model", metavar="PATH", help="the same for the candidate")


def _declare_large(group: Any) -> None:
    """The advice where an exact comparison would not fit."""
    add = group.add_argument
    add(
        "--memory",
        metavar="GB",
        type=float,
        default=4.0,
        help="above it, count in histograms with a certified bound (default: %(default)g)",
    )
    add("--partial", metavar="FILE", help="write this part's counts there, to --merge; no verdict")
    add("--merge", metavar="FILE", nargs="+", help="compare the parts that --partial wrote")
    add(
        "--spark",
        metavar="MASTER",
        help="compare on Spark, which reads the files (Parquet, ORC): local[4], spark://HOST:PORT, "
        "yarn, ...",
    )


def _declare_report(group: Any) -> None:
    add = group.add_argument
    add("--out", metavar="DIR", help="where report.html, .json, .xml (JUnit) and .md go")
    add_json(group, "what report.json holds, also without --out,")
    add("--title", default="AUC parity", help="heading of the report")
    add("--print-schema", action="store_true", help="print the JSON Schema of report.json and end")
