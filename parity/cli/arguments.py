"""The arguments of `semisync parity`: what they are, and which of them go together."""

import argparse
import os
from typing import Any, Callable, Dict, Optional, Tuple

from parity.gates import METRICS, parse_requirements
from parity.io.logits import ROLES, choose_columns
from parity.report.junit import INCONCLUSIVE
from parity.stats.level import CONFIDENCE
from semisync.common.errors import UsageError

_EXAMPLES = """examples:
  semisync parity scores.parquet --label y --baseline-score old --candidate-score new --out report
  semisync parity old.parquet new.parquet --key id --label y --baseline-score score --out report
  semisync parity day1.parquet --label y --baseline-score old --candidate-score new \\
    --partial day1.part
  semisync parity --merge day1.part day2.part --out report"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments."""
    parser.epilog = _EXAMPLES
    add = parser.add_argument  # the order here is the order in --help
    _declare_inputs(add)
    _declare_columns(add)
    _declare_diagnosis(add)
    _declare_verdict_and_report(add)


def _declare_inputs(add: Callable[..., Any]) -> None:
    """Where the rows come from: files of scores, or the counts of parts."""
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
    add("--partial", metavar="FILE", help="write this part's counts there, to --merge; no verdict")
    add("--merge", metavar="FILE", nargs="+", help="compare the parts that --partial wrote")
    add(
        "--memory",
        metavar="GB",
        type=float,
        default=4.0,
        help="above it, count in histograms with a certified bound (default: %(default)g)",
    )


def _declare_columns(add: Callable[..., Any]) -> None:
    """What the columns of the files are."""
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
        help="instead of --baseline-score: a column of logits, compared as their probabilities in "
        "float64, so that large ones have a log loss",
    )
    add("--candidate-logit", metavar="COL", help="the same for the candidate")
    add("--key", metavar="COL", help="column that names a row, the same in both files")
    add(
        "--allow-misses",
        action="store_true",
        help="leave out rows whose key is in one file only, instead of refusing them",
    )
    add("--group", metavar="COL", help="what rows share that vary together, such as the user")
    add("--weight", metavar="COL", help="column of sample weights")
    add("--day", metavar="COL", help="compare day by day as well, and test for drift")
    add(
        "--slice",
        metavar="COL",
        nargs="+",
        action="extend",
        default=[],
        help="compare within each value as well",
    )


def _declare_diagnosis(add: Callable[..., Any]) -> None:
    """What helps to find where a difference comes from."""
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
    add(
        "--verified",
        metavar="RECORD",
        help="what `semisync verify --json` printed of the candidate's conversion: it excludes "
        "rare faults, for which the rows may be too few",
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


def _declare_verdict_and_report(add: Callable[..., Any]) -> None:
    """What decides the verdict, and where it is reported."""
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
        "--require",
        metavar="METRIC=MARGIN",
        nargs="+",
        action="extend",
        default=[],
        help=f"what must be equivalent as well, to within its own margin: {', '.join(METRICS)}",
    )
    add("--require-slices", action="store_true", help="every slice must be equivalent as well")
    add("--require-days", action="store_true", help="every day, and their mean, as well")
    add("--title", default="AUC parity", help="heading of the report")
    add(
        "--inconclusive",
        choices=INCONCLUSIVE,
        default="fail",
        help="fail: exit code 2; warn: exit code 0 and a warning on stderr (default: %(default)s)",
    )
    add("--out", metavar="DIR", help="where report.html, .json, .xml (JUnit) and .md go")
    add("--print-schema", action="store_true", help="print the JSON Schema of report.json and end")


def check(args: argparse.Namespace) -> None:
    """Refuses numbers without meaning, and what is missing to compare rows, or parts."""
    choose_columns(args)
    if args.worst < 0:
        raise UsageError(f"--worst is {args.worst}; a number of rows, 0 or more, is expected")
    if not args.memory >= 0:
        raise UsageError(f"--memory is {args.memory:g}; gigabytes, 0 or more, are expected")
    if args.show and not args.worst:
        raise UsageError("--show lists columns of the worst rows; --worst says how many rows")
    _check_requirements(args)
    for option, value in (("--group", args.group), ("--worst", args.worst)):
        if value and (args.partial or args.merge):
            raise UsageError(
                f"{option} needs a second look at the rows, which parts do not keep; leave it out, "
                "or compare all rows at once"
            )
    if args.partial and args.baseline_runs:
        raise UsageError("--partial counts one comparison; runs are compared in memory")
    if args.partial and args.verified:
        raise UsageError("--verified is for the verdict; give it with --merge")
    needed = {"--label": args.label, "--baseline-score": args.baseline_score, "--out": args.out}
    if args.merge:
        if args.baseline or args.partial or args.baseline_runs:
            raise UsageError("--merge takes the parts alone, without files of scores or --partial")
        kept = {"--weight": args.weight, "--day": args.day, "--slice": args.slice}
        for option, value in kept.items():
            if value:
                raise UsageError(f"{option} is for --partial; the parts know what they hold")
        needed = {"--out": args.out}
    elif args.partial:
        needed.pop("--out")
    missing = [option for option, value in needed.items() if value is None]
    if missing:
        raise UsageError(f"the following arguments are required: {', '.join(missing)}")


def _check_requirements(args: argparse.Namespace) -> None:
    """Refuses gates that could never be decided."""
    metrics = parse_requirements(args.require)
    if args.partial and (metrics or args.require_slices or args.require_days):
        raise UsageError("--partial gives no verdict; name what is required with --merge")
    for asked, option, given, needed in (
        ("gauc" in metrics, "--require gauc", args.group, "--group"),
        (args.require_slices, "--require-slices", args.slice or args.merge, "--slice"),
        (args.require_days, "--require-days", args.day or args.merge, "--day"),
    ):
        if asked and not given:
            raise UsageError(f"{option} needs {needed}, which is not given")


def choose_files(args: argparse.Namespace) -> None:
    """Either BASELINE [CANDIDATE] or both lists of runs, whose first files then stand for them."""
    runs = (args.baseline_runs, args.candidate_runs)
    if args.baseline is None and None in runs:
        raise UsageError(
            "no scores are given: name BASELINE [CANDIDATE], or --baseline and --candidate"
        )
    if args.baseline is not None:
        if runs != (None, None):
            raise UsageError("name either BASELINE [CANDIDATE] or the files of the runs, not both")
        return
    if args.allow_misses:
        raise UsageError("--allow-misses joins two files; runs must all have the same rows")
    args.baseline, args.candidate = args.baseline_runs[0], args.candidate_runs[0]


def column_names(args: argparse.Namespace) -> Dict[str, Any]:
    """The columns' names by role; refuses options that contradict the number of files."""
    score = args.candidate_score
    if args.candidate is None:
        for option, value in (("--key", args.key), ("--allow-misses", args.allow_misses)):
            if value:
                raise UsageError(f"{option} joins two files, but only {args.baseline} is given")
        if score is None or score == args.baseline_score:
            raise UsageError(
                f"with one file, --candidate-score must name a second column of {args.baseline}"
            )
    elif args.key is None:
        raise UsageError(
            "two files need --key, a column whose value names the same row in both files"
        )
    elif (
        args.baseline_runs is None
        and score in (None, args.baseline_score)
        and os.path.realpath(args.baseline) == os.path.realpath(args.candidate)
    ):
        raise UsageError(
            f"both models' scores would be column {args.baseline_score!r} of {args.baseline}, "
            "which equals itself; name the candidate's file or --candidate-score"
        )
    return {
        "label": args.label,
        "baseline_score": args.baseline_score,
        "candidate_score": args.baseline_score if score is None else score,
        "key": args.key,
        "group": args.group,
        "weight": args.weight,
        "ids": tuple(dict.fromkeys(column_and_table(item)[0] for item in args.ids)),
        "parts": tuple(dict.fromkeys([*args.slice, *([args.day] if args.day else [])])),
        "logits": _logits(args),
    }


def _logits(args: argparse.Namespace) -> Tuple[str, ...]:
    """The roles whose columns hold logits; the candidate's too where it takes the baseline's."""
    given = args.baseline_logit, args.candidate_logit
    inherited = args.candidate_score is None and args.baseline_logit is not None
    held = given[0] is not None, given[1] is not None or inherited
    return tuple(role for role, logit in zip(ROLES, held) if logit)


def column_and_table(item: str) -> Tuple[str, Optional[str]]:
    """Both sides of an --ids COL[=TABLE]."""
    column, _, table = item.partition("=")
    return column, table or None
