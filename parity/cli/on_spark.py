"""`semisync parity --spark MASTER`: the same comparison where the scores are, on Spark."""

import argparse
from typing import Any, Dict, Optional

from parity.cli.conclusion import conclude, decided
from parity.cli.models import facts_of_models
from parity.io import standard_input
from parity.verified import Verified
from semisync.common.errors import UsageError

_REFUSED = {  # what it lacks, and what to do instead
    "baseline_runs": "several runs are compared in memory",
    "candidate_runs": "several runs are compared in memory",
    "partial": "Spark compares all rows at once",
    "merge": "Spark compares all rows at once",
    "ids": "single rows are not diagnosed on Spark; compare a sample of the rows without --spark",
    "worst": "single rows are not listed on Spark; compare a sample of the rows without --spark",
    "text": "Spark reads Parquet and ORC here; write the files so",
    "fill": "give the rows a value before, with DataFrame.fillna",
    "baseline_logit": "write probabilities, or name the logits by --baseline-score",
    "candidate_logit": "write probabilities, or name the logits by --candidate-score",
}


def check(args: argparse.Namespace) -> None:
    """Refuses options that Spark's comparison does not have."""
    for name, instead in _REFUSED.items():
        if getattr(args, name):
            raise UsageError(f"--{name.replace('_', '-')} does not go with --spark: {instead}")
    if len(args.key) > 1:
        raise UsageError("Spark joins by one column; give --key once, or leave --spark out")
    if args.candidate and not args.key:
        raise UsageError("two files need --key on Spark, where rows have no place")
    if standard_input.NAME in (args.baseline, args.candidate):
        raise UsageError("Spark reads no standard input (-); name a file, folder or pattern")


def compare(args: argparse.Namespace, names: Dict[str, Any], record: Optional[Verified]) -> int:
    """Compares on Spark; returns the exit code."""
    from parity import diagnose
    from parity.inputs.checks import Column, check_margin
    from parity.spark.session import explained, read, start
    from parity.tables import with_days

    check_margin(args.margin)
    session = start(args.spark)
    from parity.spark.given import Names
    from parity.spark.join import join
    from parity.spark.whole import compare_columns

    columns = Names(
        label=names["label"],
        baseline=names["baseline_score"],
        candidate=names["candidate_score"],
        key=names["key"] or None,
        clusters=names["group"],
        weights=names["weight"],
        slices=tuple(dict.fromkeys(args.slice)),
        day=args.day,
    )
    origin: Dict[str, Any] = {"spark": _about(session), "files": []}
    rows, told = with_days(read(session, args.baseline), args.day), {}
    with explained("Spark ended the comparison"):
        if args.candidate is not None and columns.key is not None:
            sides, paths = (rows, read(session, args.candidate)), (args.baseline, args.candidate)
            joined = join(
                sides, columns.key, columns.label, columns.candidate, paths, args.allow_misses
            )
            rows, origin["join"] = joined.df, joined.counts
            told = {"new": Column(columns.candidate, args.candidate)}
            columns = columns._replace(candidate=joined.candidate, key=None)
        comparison = compare_columns(rows, columns, args.margin, record, args.baseline, told)
    comparison = decided(args, comparison, origin)
    comparison = diagnose(comparison, **facts_of_models(args, comparison))
    return conclude(args, comparison, origin, names)


def _about(session: Any) -> Dict[str, str]:
    return {"version": session.version, "application": session.sparkContext.applicationId}
