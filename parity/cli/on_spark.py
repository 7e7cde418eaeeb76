"""`semisync parity --spark MASTER`: the same comparison where the scores are, on Spark."""

import argparse
from typing import Any, Dict, Optional

from parity.cli.checks import baselines, data_sets
from parity.cli.conclusion import conclude, decided
from parity.cli.models import facts_of_models
from parity.io import standard_input
from parity.verified import Verified
from semisync.common.errors import UsageError

_REFUSED = {  # the missing feature, and its alternative
    "partial": "Spark compares all rows at once",
    "merge": "Spark compares all rows at once",
    "ids": "single rows are not diagnosed on Spark; compare a sample of the rows without --spark",
    "worst": "single rows are not listed on Spark; compare a sample of the rows without --spark",
    "text": "Spark reads Parquet and ORC here; write the files so",
}


def check(args: argparse.Namespace) -> None:
    """Refuses options that Spark's comparison does not have."""
    for name, instead in _REFUSED.items():
        if getattr(args, name):
            raise UsageError(f"--{name.replace('_', '-')} does not go with --spark: {instead}")
    if (args.candidate or args.baseline_runs) and not args.key:
        raise UsageError("several files need --key on Spark, where rows have no place")
    if standard_input.NAME in (args.baseline, args.candidate):
        raise UsageError("Spark reads no standard input (-); name a file, folder or pattern")


def compare(args: argparse.Namespace, names: Dict[str, Any], record: Optional[Verified]) -> int:
    """Compares on Spark; returns the exit code."""
    from parity import diagnose
    from parity.inputs.checks import check_margin
    from parity.io.logits import held_by
    from parity.spark.session import explained, read, start

    check_margin(args.margin)
    session = start(args.spark)
    from parity.spark.frames import compare_frames
    from parity.spark.given import Names

    columns = Names(
        label=names["label"],
        baseline=names["baseline_score"],
        candidate=names["candidate_score"],
        keys=tuple(args.key),
        clusters=names["group"],
        weights=names["weight"],
        slices=tuple(dict.fromkeys(args.slice)),
        day=args.day,
        logits=held_by(names["logits"]),
        fills=names["fills"],
        seed_sd=args.seed_sd,
    )
    origin: Dict[str, Any] = {"spark": _about(session), "files": []}
    paths = data_sets(args)
    frames = [read(session, path) for path in paths]
    more = {"allow_misses": args.allow_misses, "baselines": baselines(args)}
    with explained("Spark ended the comparison"):
        found = compare_frames(frames, columns, paths, args.margin, record, **more)
    if found.join is not None:
        origin["join"] = found.join
    comparison = found.comparison
    comparison = decided(args, comparison, origin)
    comparison = diagnose(comparison, **facts_of_models(args, comparison))
    return conclude(args, comparison, origin, names)


def _about(session: Any) -> Dict[str, str]:
    return {"version": session.version, "application": session.sparkContext.applicationId}
