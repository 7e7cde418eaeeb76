"""Checks of the arguments of `semisync parity`: which go together, and their columns and files."""

import argparse
import fnmatch
import os
from typing import Any, Dict, List, Optional, Tuple

from parity.gates import parse_requirements
from parity.io.logits import ROLES, choose_columns
from parity.io.text_format import text_format
from semisync.common.errors import UsageError


def check(args: argparse.Namespace) -> None:
    """Refuses meaningless numbers, and missing arguments for comparing rows, or parts."""
    choose_columns(args)
    args.text = text_format(args.text)
    if args.worst < 0:
        raise UsageError(f"--worst is {args.worst}; a number of rows, 0 or more, is expected")
    if not args.memory >= 0:
        raise UsageError(f"--memory is {args.memory:g}; gigabytes, 0 or more, are expected")
    if args.show and not args.worst:
        raise UsageError("--show lists columns of the worst rows; --worst says how many rows")
    _check_requirements(args)
    _check_parts(args)
    missing = _missing(args)
    if missing:
        raise UsageError(f"the following arguments are required: {', '.join(missing)}")


def _missing(args: argparse.Namespace) -> List[str]:
    """All missing required arguments, so that nobody is asked twice."""
    found: List[str] = []
    if not args.merge:
        runs = (args.baseline_runs, args.candidate_runs)
        several = runs != (None, None)
        if args.baseline is None:
            named = zip(("--baseline FILE ...", "--candidate FILE ..."), runs)
            found += (
                [option for option, files in named if files is None]
                if several
                else ["BASELINE [CANDIDATE], the file or files of scores"]
            )
        found += ["--label"] if args.label is None else []
        found += ["--baseline-score"] if args.baseline_score is None else []
        if args.candidate is None and not several and args.candidate_score is None:
            found += ["--candidate-score" + " (or CANDIDATE, a second file)" * bool(args.baseline)]
    if args.out is None and not args.partial and not args.json:
        found += ["--out"]
    return found


def _check_parts(args: argparse.Namespace) -> None:
    """Refuses options that counts of parts cannot have, and options of parts elsewhere."""
    for option, value in (("--group", args.group), ("--worst", args.worst)):
        if value and (args.partial or args.merge):
            raise UsageError(
                f"{option} needs the rows a second time, which parts do not keep; leave it out, or "
                "compare all rows at once"
            )
    if args.partial and args.baseline_runs:
        raise UsageError("--partial counts one comparison; compare all rows of the runs at once")
    if args.partial and args.json:
        raise UsageError("--json prints a verdict; --partial gives none, so name it with --merge")
    if args.partial and args.verified:
        raise UsageError("--verified is for the verdict; give it with --merge")
    if not args.merge:
        return
    if args.baseline or args.partial or args.baseline_runs:
        raise UsageError("--merge takes the parts alone, without files of scores or --partial")
    for option, value in (
        ("--weight", args.weight),
        ("--day", args.day),
        ("--slice", args.slice),
        ("--fill", args.fill),
        ("--text", args.text),
    ):
        if value:
            raise UsageError(f"{option} is for --partial; the parts know what they hold")


def _check_requirements(args: argparse.Namespace) -> None:
    """Refuses gates that could never be decided."""
    metrics = parse_requirements(args.require).margins
    if args.partial and (args.require or args.require_slices or args.require_days):
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
    if args.seed_sd is not None and None in (args.baseline_runs, args.candidate_runs):
        raise UsageError("--seed-sd is of training runs, named by --baseline and --candidate")
    if args.baseline is not None:
        if (args.baseline_runs, args.candidate_runs) != (None, None):
            raise UsageError("name either BASELINE [CANDIDATE] or the files of the runs, not both")
        return
    if args.allow_misses:
        raise UsageError("--allow-misses joins two files; runs must all have the same rows")
    from parity.runs import check_runs

    check_runs(len(args.baseline_runs), len(args.candidate_runs), args.seed_sd)
    args.baseline, args.candidate = args.baseline_runs[0], args.candidate_runs[0]


def data_sets(args: argparse.Namespace) -> List[str]:
    """The paths of scores: the baseline's, the candidate's if any, and further runs' of either."""
    first = [path for path in (args.baseline, args.candidate) if path is not None]
    return [*first, *(args.baseline_runs or [])[1:], *(args.candidate_runs or [])[1:]]


def baselines(args: argparse.Namespace) -> int:
    """How many of the `data_sets` are the baseline's."""
    return 1 if args.baseline_runs is None else len(args.baseline_runs)


def column_names(args: argparse.Namespace) -> Dict[str, Any]:
    """The columns' names by role; refuses options that contradict the number of files."""
    score = args.candidate_score
    if args.candidate is None:
        if args.allow_misses:
            raise UsageError(f"--allow-misses joins two files, but only {args.baseline} is given")
        if score == args.baseline_score:
            raise UsageError(
                f"with one file, --candidate-score must name a second column of {args.baseline}"
            )
    # One file by two names counts as one.
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
        "key": args.key[0] if len(args.key) == 1 else tuple(args.key),
        "group": args.group,
        "weight": args.weight,
        "ids": tuple(dict.fromkeys(column_and_table(item)[0] for item in args.ids)),
        "parts": tuple(dict.fromkeys([*args.slice, *([args.day] if args.day else [])])),
        "day": args.day,
        "logits": _logits(args),
        "fills": _fills(args),
    }


def _fills(args: argparse.Namespace) -> Tuple[Tuple[str, str], ...]:
    """(column, its fill for missing values) of each --fill, whose COL may be a pattern."""
    columns = list(dict.fromkeys(filter(None, [args.group, args.day, *args.slice])))
    fills: Dict[str, str] = {}
    for item in args.fill:
        pattern, equals, value = item.partition("=")
        meant = [name for name in columns if fnmatch.fnmatchcase(name, pattern)]
        if not equals or not meant:
            raise UsageError(
                f"--fill {item} names no column of --group, --day or --slice; COL=VALUE is "
                "expected, as labels, scores and weights cannot be made up"
            )
        fills = {**dict.fromkeys(meant, value), **fills}  # the first that fits
    return tuple(fills.items())


def _logits(args: argparse.Namespace) -> Tuple[str, ...]:
    """The roles whose columns hold logits; the candidate's too where it takes the baseline's."""
    given = args.baseline_logit, args.candidate_logit
    inherited = args.candidate_score is None and args.baseline_logit is not None
    held = given[0] is not None, given[1] is not None or inherited
    return tuple(role for role, logit in zip(ROLES, held) if logit)


def column_and_table(item: str) -> Tuple[str, Optional[str]]:
    """The column and the table, or None, of an --ids COL[=TABLE]."""
    column, _, table = item.partition("=")
    return column, table or None
