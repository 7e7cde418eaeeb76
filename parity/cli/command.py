"""`semisync parity`: two models' scores in, a verdict out, as words, HTML, JSON and exit code.

    semisync parity scores.parquet --label y --baseline-score p_old --candidate-score p_new --out r
    semisync parity old.parquet new.parquet --key row_id --label y --baseline-score p --out r

    semisync parity day1.parquet --partial day1.part ...; semisync parity --merge *.part --out r

The exit code is the verdict's; `--inconclusive warn` makes that of an inconclusive one 0.
"""

import argparse
import dataclasses
from typing import Any, Optional

from parity.cli import counting
from parity.cli.arguments import check, choose_files, column_and_table, column_names, configure
from parity.cli.conclusion import EXIT, conclude, decided
from parity.diagnosis.facts import check_source
from parity.io import standard_input
from parity.report.schema import schema_text
from parity.stats.level import at_confidence
from parity.verified import Verified, read_record
from semisync.common.files import check_writable

__all__ = ["EXIT", "configure", "run"]

_BYTES_A_ROW = 150  # that an exact comparison of float64 scores takes at its peak, about
_TEXT_FACTOR = 10  # bytes of memory for each of a text file, about


def run(args: argparse.Namespace) -> int:
    """Reads, compares, reports; returns the verdict's exit code."""
    if args.print_schema:
        print(schema_text(), end="")
        return 0
    check(args)
    check_writable(args.partial or args.out)
    for path in (args.baseline_model, args.candidate_model):
        if path is not None:
            check_source(path)
    record = None if args.verified is None else read_record(args.verified)
    with at_confidence(args.confidence):
        if args.merge:
            return counting.merge(args, record)
        with standard_input.kept(args):
            return _compare(args, record)


def _compare(args: argparse.Namespace, record: Optional[Verified]) -> int:
    """The comparison of files: exact in memory, or by counts."""
    from parity.io.look_up import values_at

    choose_files(args)
    names = column_names(args)
    if args.show:
        values_at(args.baseline, args.show, [])  # a column that is not there ends it here
    if args.partial:
        return counting.count_part(args, names)
    if _outgrows_memory(args):
        return counting.compare(args, names, record)

    from parity import compare, compare_runs, diagnose
    from parity.inputs.checks import check_margin
    from parity.io import readers

    check_margin(args.margin)  # before the files are read
    runs = None
    if args.baseline_runs is not None:
        sample, *runs = readers.read_runs(
            args.baseline_runs, args.candidate_runs, readers.ColumnNames(**names)
        )
    elif args.candidate is None:
        sample = readers.read_one(args.baseline, readers.ColumnNames(**names))
    else:
        sample = readers.read_two(
            args.baseline, args.candidate, readers.ColumnNames(**names), args.allow_misses
        )
    more = (args.margin, sample.clusters, sample.weights, args.verified)
    if runs is None:
        found = compare(sample.labels, sample.baseline, sample.candidate, *more)
    else:
        found = compare_runs(sample.labels, runs[0], runs[1], *more)
    origin = sample.provenance()
    found = decided(args, _with_parts(found, sample, args), origin)
    found = diagnose(
        found,
        sample.labels,
        sample.baseline,
        sample.candidate,
        sample.weights,
        sample.parts,
        args.day,
        _with_tables(sample.ids, args),
        args.baseline_model,
        args.candidate_model,
    )
    return conclude(args, found, origin, names)


def _outgrows_memory(args: argparse.Namespace) -> bool:
    """Whether the rows, at the bytes that an exact comparison takes of each, exceed --memory."""
    if args.baseline_runs is not None:
        return False
    from parity.io import streams

    needed = 0
    for path in filter(None, (args.baseline, args.candidate)):
        rows = streams.count_rows(path)
        text = streams.total_bytes(path) * _TEXT_FACTOR if rows is None else 0
        needed += text if rows is None else rows * _BYTES_A_ROW
    return needed > args.memory * 1e9


def _with_parts(found: Any, sample: Any, args: argparse.Namespace) -> Any:
    """The comparison with days, slices and worst rows as asked for."""
    import parity

    columns = (sample.labels, sample.baseline, sample.candidate)
    more = (args.margin, sample.clusters, sample.weights)
    days = None
    if args.day:
        days = parity.compare_days(*columns, sample.parts[args.day], *more)
    worst = parity.worst_rows(*columns, args.worst, sample.weights) if args.worst else ()
    if sample.match is not None:
        rows = sample.match.baseline
        worst = tuple(one._replace(row=int(rows[one.row])) for one in worst)
    return dataclasses.replace(
        found,
        days=days,
        slices=tuple(
            (name, parity.compare_slices(*columns, sample.parts[name], *more))
            for name in args.slice
        ),
        worst=worst,
    )


def _with_tables(ids: Any, args: argparse.Namespace) -> Any:
    """The columns of ids, each with the table that --ids names after it."""
    tables = dict(column_and_table(item) for item in args.ids)
    return {name: column._replace(table=tables[name]) for name, column in ids.items()}
