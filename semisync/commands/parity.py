"""`semisync parity`: two models' scores in, a verdict out, as words, HTML, JSON and exit code.

    semisync parity scores.parquet --label y --baseline-score p_old --candidate-score p_new --out r
    semisync parity old.parquet new.parquet --key row_id --label y --baseline-score p --out r
    semisync parity day1.parquet --partial day1.part ...; semisync parity --merge *.part --out r

The exit code is the verdict's; `--inconclusive warn` makes that of an inconclusive one 0.
"""

import argparse
import dataclasses
from typing import Any, Dict, Optional, Sequence, Tuple

from parity.cli import arguments, counting, on_spark, progress
from parity.cli.checks import check, choose_files, column_and_table, column_names, data_sets
from parity.cli.conclusion import conclude, decided
from parity.cli.models import check_models, facts_of_models
from parity.io import standard_input
from parity.report.schema import schema, schema_text
from parity.stats.intervals import at_confidence
from parity.verified import Verified, read_record
from semisync.answers import answer
from semisync.common.files import check_writable

# Peak bytes per row of an exact comparison of float64 scores and its diagnosis, about.
_BYTES_PER_ROW = 180
_BYTES_PER_RUN = 25  # of a row, for each training run but the first of either side
_BYTES_PER_PART = 75  # of a row, for each day or slice
_BYTES_PER_KEY = 180  # of a row of one file, which is looked up among the others
_BYTES_PER_COLUMN = 25  # of a row, for groups and for weights
_BYTES_PER_TEXT_BYTE = 10  # of memory, about


def configure(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments, and the readers of the models that they name: parity has none."""
    arguments.configure(parser)
    parser.set_defaults(check_model=_check_model, read_facts=_read_facts)


def _check_model(path: str) -> None:
    from migrate.facts.read import check_source

    check_source(path)


def _read_facts(path: str) -> Any:
    from migrate import read_facts

    return read_facts(path)


def run(args: argparse.Namespace) -> int:
    """Reads, compares, reports; returns the verdict's exit code."""
    if args.print_schema:
        answer(args.json, schema(), schema_text().splitlines())
        return 0
    check(args)
    if args.spark:
        on_spark.check(args)
    if args.partial or args.out:
        check_writable(args.partial or args.out)
    check_models(args)
    record = None if args.verified is None else read_record(args.verified)
    with at_confidence(args.confidence):
        if args.merge:
            return counting.merge(args, record)
        with standard_input.kept(args):
            return _compare(args, record)


def _compare(args: argparse.Namespace, record: Optional[Verified]) -> int:
    """Compares files: exactly in memory, or by counts beyond it."""
    from parity.io.look_up import values_at

    choose_files(args)
    names = column_names(args)
    if args.spark:
        return on_spark.compare(args, names, record)
    if args.show:
        values_at(args.baseline, args.show, [], args.text)  # ends here without the column
    if args.partial:
        return counting.count_part(args, names)
    if _outgrows_memory(args):
        return counting.compare(args, names, record)

    from parity import compare, compare_runs, diagnose
    from parity.inputs.checks import check_margin
    from parity.inputs.logits import sigmoid
    from parity.inputs.rows import SIDES
    from parity.io.logits import ROLES

    check_margin(args.margin)  # before the files are read
    sample, runs = _read(args, names)
    logits = [side for side, role in zip(SIDES, ROLES) if role in names["logits"]]
    columns: Dict[str, Any] = {
        "margin": args.margin,
        "clusters": sample.clusters,
        "weights": sample.weights,
        "verified": args.verified,
        "logits": logits,
    }
    if runs is None:
        comparison = compare(sample.labels, sample.baseline, sample.candidate, **columns)
    else:
        columns["seed_sd"] = args.seed_sd
        comparison = compare_runs(sample.labels, *runs, **columns)
    origin = sample.provenance()
    comparison = decided(args, _with_parts(comparison, sample, args, logits), origin)
    comparison = diagnose(
        comparison,
        sample.labels,
        sigmoid(sample.baseline) if "baseline" in logits else sample.baseline,
        sigmoid(sample.candidate) if "candidate" in logits else sample.candidate,
        weights=sample.weights,
        parts=sample.parts,
        day=args.day,
        ids=_with_tables(sample.ids, args),
        **facts_of_models(args, comparison),
    )
    return conclude(args, comparison, origin, names)


def _read(args: argparse.Namespace, names: Dict[str, Any]) -> Tuple[Any, Any]:
    """The rows, and the scores of both sides' runs where several are given."""
    from parity.io import readers

    with progress.shown() as told:
        columns = readers.ColumnNames(**names, text=args.text, progress=told)
        if args.baseline_runs is not None:
            sample, *runs = readers.read_runs(args.baseline_runs, args.candidate_runs, columns)
            return sample, runs
        if args.candidate is None:
            return readers.read_one(args.baseline, columns), None
        return readers.read_two(args.baseline, args.candidate, columns, args.allow_misses), None


def _outgrows_memory(args: argparse.Namespace) -> bool:
    """Whether an exact comparison of the rows would take more than --memory."""
    from parity.io.batches import count_rows
    from parity.io.data_files import sizes_of

    needed, written = 0, args.text
    parts = len({*args.slice, *filter(None, [args.day])})
    columns = sum(name is not None for name in (args.group, args.weight))
    bytes_per_row = _BYTES_PER_ROW + _BYTES_PER_PART * parts + _BYTES_PER_COLUMN * columns
    if args.key and args.candidate is None:
        bytes_per_row += _BYTES_PER_KEY
    for place, path in enumerate(data_sets(args)):
        rows = count_rows(path, written)
        if rows is None:
            sizes = sizes_of(path, written is not None)
            needed += sum(sizes.values()) * _BYTES_PER_TEXT_BYTE
        else:
            needed += rows * (bytes_per_row if place < 2 else _BYTES_PER_RUN)
    return needed > args.memory * 1e9


def _with_parts(
    comparison: Any, sample: Any, args: argparse.Namespace, logits: Sequence[str]
) -> Any:
    """The comparison with the requested days, slices and worst rows."""
    import parity
    from parity.tables import with_parts

    columns = (sample.labels, sample.baseline, sample.candidate)
    worst: Any = ()
    if args.worst:
        worst = parity.worst_rows(*columns, args.worst, sample.weights, logits)
    if sample.match is not None:
        rows = sample.match.baseline
        worst = tuple(row._replace(row=int(rows[row.row])) for row in worst)
    comparison = with_parts(comparison, sample, args.day, args.slice)
    return dataclasses.replace(comparison, worst=worst)


def _with_tables(ids: Any, args: argparse.Namespace) -> Any:
    """The columns of ids, each with the table that --ids names after it."""
    tables = dict(column_and_table(item) for item in args.ids)
    return {name: column._replace(table=tables[name]) for name, column in ids.items()}
