"""`semisync parity` in bounded memory: of one data set, of two, of a part, or of merged parts."""

import argparse
from typing import Any, Callable, Dict, List, Optional

from parity.cli import progress
from parity.cli.checks import baselines, data_sets
from parity.cli.conclusion import conclude, decided, warnings_of_join
from parity.cli.models import facts_of_models
from parity.io import standard_input
from parity.verified import Verified
from semisync.common.errors import UsageError
from semisync.common.terminal import say


def merge(args: argparse.Namespace, record: Optional[Verified]) -> int:
    """Compares the parts that `count_part` wrote; returns the exit code."""
    from parity.histogram import beyond_memory, counts
    from parity.io.identity import identify

    _refuse_ids(args)
    merged = counts.load_all(args.merge)
    origin: Dict[str, Any] = {
        "counted": "in histograms",
        "parts": [identify(part).to_json() for part in args.merge],
        "files": [file for of_one in merged.source.files for file in of_one],
    }
    if merged.source.join:
        origin["join"] = dict(merged.source.join)
    comparison = beyond_memory.compare_counts(merged, args.margin, record)
    return _conclude(args, comparison, origin, dict(merged.source.columns))


def compare(args: argparse.Namespace, names: Dict[str, Any], record: Optional[Verified]) -> int:
    """Compares more rows than fit memory; returns the exit code."""
    from parity.histogram import beyond_memory

    _refuse_ids(args)
    origin: Dict[str, Any] = {"counted": "in histograms"}
    with progress.shown() as told:
        blocks = _blocks(args, names, told)
        grouped = args.group is not None
        comparison = beyond_memory.compare_blocks(
            blocks, _kind(args, names), args.margin, grouped, args.worst, record, _sides(args)
        )
    if args.candidate is not None:
        origin["join"] = blocks.counts
    origin["files"] = [file for of_one in _identified(args) for file in of_one]
    return _conclude(args, comparison, origin, names)


def count_part(args: argparse.Namespace, names: Dict[str, Any]) -> int:
    """Writes a part's counts, to be merged."""
    from parity.histogram import beyond_memory, counts
    from parity.io.identity import holds_rows

    _refuse_ids(args)
    with progress.shown() as told:
        blocks = _blocks(args, names, told)
        part = beyond_memory.count(blocks, _kind(args, names))
    join = {} if args.candidate is None else blocks.counts
    roles = ("label", "baseline_score", "candidate_score", "weight", "logits")
    files = tuple(
        tuple(file for file in of_one if holds_rows(file["path"], args.text))
        for of_one in _identified(args)
    )
    part.source = counts.Source(
        {role: names[role] for role in roles if names[role]},
        standard_input.renamed(args, files),
        join,
    )
    part.save(args.partial)
    whole = part.whole
    say(f"{whole.rows:,} rows, {whole.positives:,} of them positive: {args.partial}")
    for sentence in warnings_of_join(args, join):
        say(f"  Warning: {sentence}")
    return 0


def _conclude(
    args: argparse.Namespace, comparison: Any, origin: Dict[str, Any], names: Dict[str, Any]
) -> int:
    """Concludes, with the suspects that the models alone reveal."""
    from parity import diagnose

    comparison = decided(args, comparison, origin)
    comparison = diagnose(comparison, **facts_of_models(args, comparison))
    return conclude(args, comparison, origin, names)


def _blocks(
    args: argparse.Namespace, names: Dict[str, Any], told: Optional[Callable[[str, int], None]]
) -> Any:
    """The checked rows; of two data sets with the `counts` of their join."""
    from parity.io.blocks import blocks
    from parity.io.readers import ColumnNames

    columns = ColumnNames(**names, text=args.text)
    if args.candidate is None:
        return blocks(args.baseline, columns, told)
    from parity.io.stored_join import StoredJoin

    return StoredJoin(data_sets(args), columns, args.allow_misses, told, baselines(args))


def _sides(args: argparse.Namespace) -> Any:
    """How many training runs each side has; None where they are one comparison."""
    if args.baseline_runs is None:
        return None
    from parity.histogram.runs import Sides

    return Sides(len(args.baseline_runs), len(args.candidate_runs), args.seed_sd)


def _kind(args: argparse.Namespace, names: Dict[str, Any]) -> Any:
    from parity.histogram import counts
    from parity.io.logits import held_by

    logits = held_by(names["logits"])
    return counts.Kind(args.weight is not None, args.day, tuple(args.slice), logits)


def _identified(args: argparse.Namespace) -> List[List[Dict[str, Any]]]:
    from parity.io.data_files import files_of
    from parity.io.identity import identify_all

    text = args.text
    named = [
        [(file, None) for file in files_of(data, text is not None)] for data in data_sets(args)
    ]
    return [[file.to_json() for file in identify_all(files, text)] for files in named]


def _refuse_ids(args: argparse.Namespace) -> None:
    if args.ids:
        raise UsageError("--ids needs the rows in memory; leave it out or raise --memory")
