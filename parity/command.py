"""`semisync parity`: two models' scores in, a verdict out, as words, HTML, JSON and exit code.

    semisync parity scores.parquet --label y --baseline-score p_old --candidate-score p_new --out r
    semisync parity old.parquet new.parquet --key row_id --label y --baseline-score p --out r

    semisync parity day1.parquet --partial day1.part ...; semisync parity --merge *.part --out r

Exit codes: 0 equivalent, 1 not equivalent, 2 inconclusive (0 with `--inconclusive warn`), 3 bad
input or usage.
"""

import argparse
import dataclasses
import datetime
import sys
from typing import Any, Callable, Dict, List, Optional

from parity.arguments import check, choose_files, column_and_table, column_names, configure
from parity.diagnosis.facts import check_source
from parity.equivalence import Verdict
from parity.schema import schema_text
from semisync.errors import UsageError

__all__ = ["EXIT", "configure", "run"]

EXIT = {Verdict.EQUIVALENT: 0, Verdict.NOT_EQUIVALENT: 1, Verdict.INCONCLUSIVE: 2}

_BYTES_A_ROW = 150  # that an exact comparison of float64 scores takes at its peak, about
_TEXT_FACTOR = 10  # bytes of memory for each of a text file, about

_ASCII = str.maketrans({"−": "-", "±": "+-"})  # for terminals and logs of any encoding


def run(args: argparse.Namespace) -> int:
    """Reads, compares, reports; returns the verdict's exit code."""
    if args.print_schema:
        print(schema_text(), end="")
        return 0
    check(args)
    for path in (args.baseline_model, args.candidate_model):
        if path is not None:
            check_source(path)
    if args.merge:
        return _report_summary(args, {}, None)
    choose_files(args)
    names = column_names(args)
    if args.partial or _outgrows_memory(args):
        return _report_summary(args, names, args.baseline)

    from parity import compare, compare_runs, diagnose, readers
    from parity.checks import check_margin

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
    more = (args.margin, sample.clusters, sample.weights)
    if runs is None:
        found = compare(sample.labels, sample.baseline, sample.candidate, *more)
    else:
        found = compare_runs(sample.labels, runs[0], runs[1], *more)
    found = _with_parts(found, sample, args)
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
    return _report(args, found, sample.provenance(), names)


def _report(
    args: argparse.Namespace, found: Any, origin: Dict[str, Any], names: Dict[str, Any]
) -> int:
    """Writes the report, says it in words; returns the verdict's exit code."""
    from parity import words, write_report
    from parity.diagnosis.words import in_words
    from parity.versions import versions

    provenance = {
        **origin,
        "columns": {name: column for name, column in names.items() if column},
        "versions": versions(),
        "written": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
    }
    files = write_report(found, args.out, args.title, provenance, args.inconclusive)
    for line in (
        f"{words.NAME[found.verdict]}: {words.headline(found)}",
        f"  {words.finding(found)}",
        f"  {words.sample(found)}.",
        f"  {words.advice(found)}",
        *(f"  {line}" for line in in_words(found.diagnosis)),
        *(f"  {line}" for line in words.parts_in_words(found)),
        *(f"  Note: {note}" for note in found.notes),
        f"  Report: {', '.join(map(str, files))}",
    ):
        print(line.translate(_ASCII))
    if found.verdict is Verdict.INCONCLUSIVE and args.inconclusive == "warn":
        sys.stdout.flush()
        print(f"semisync parity: warning: {words.headline(found)}", file=sys.stderr)
        return 0
    return EXIT[found.verdict]


def _report_summary(args: argparse.Namespace, names: Dict[str, Any], path: Optional[str]) -> int:
    """The comparison in bounded memory: of one data set, or of merged parts."""
    from parity import beyond_memory, counts, readers, spilled_join, streams
    from parity.tables import files_of, identify, identify_all

    if args.ids:
        raise UsageError("--ids needs the rows in memory; leave it out or raise --memory")
    origin: Dict[str, Any] = {"counted": "in histograms"}
    if path is None:
        merged = counts.load_all(args.merge)
        found = beyond_memory.compare_counts(merged, args.margin)
        origin["parts"] = [identify(part).to_json() for part in args.merge]
        origin["files"] = [file for of_one in merged.source.files for file in of_one]
        return _report(args, _by_models(found, args), origin, dict(merged.source.columns))

    def identified(data: str) -> List[Dict[str, Any]]:
        return [file.to_json() for file in identify_all((file, None) for file in files_of(data))]

    kind = counts.Kind(args.weight is not None, args.day, tuple(args.slice))
    columns = readers.ColumnNames(**names)
    blocks: Any
    if args.candidate is None:
        blocks = streams.blocks(path, columns, _progress())
    else:
        paths = path, args.candidate
        blocks = spilled_join.SpilledJoin(paths, columns, args.allow_misses, _progress())
        origin["join"] = blocks.counts
    if args.partial:
        part = beyond_memory.count(blocks, kind)
        roles = ("label", "baseline_score", "candidate_score", "weight")
        part.source = counts.Source(
            {role: names[role] for role in roles if names[role]},
            tuple(tuple(identified(data)) for data in (path, args.candidate) if data),
        )
        part.save(args.partial)
        whole = part.whole
        print(f"{whole.rows:,} rows, {whole.positives:,} of them positive: {args.partial}")
        return 0
    found = beyond_memory.compare_blocks(
        blocks, kind, args.margin, args.group is not None, args.worst
    )
    origin["files"] = [file for data in (path, args.candidate) if data for file in identified(data)]
    return _report(args, _by_models(found, args), origin, names)


def _by_models(found: Any, args: argparse.Namespace) -> Any:
    """The comparison with what the models alone tell of a difference."""
    from parity import diagnose

    return diagnose(found, baseline_model=args.baseline_model, candidate_model=args.candidate_model)


def _progress() -> Optional[Callable[[str, int], None]]:
    """Shows the rows read on a terminal; a log gets none."""
    if not sys.stderr.isatty():
        return None
    return lambda file, rows: print(f"\r{rows:,} rows, {file}", end="\033[K", file=sys.stderr)


def _outgrows_memory(args: argparse.Namespace) -> bool:
    """Whether the rows, at the bytes that an exact comparison takes of each, exceed --memory."""
    if args.baseline_runs is not None:
        return False
    from parity import streams

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
    return dataclasses.replace(
        found,
        days=days,
        slices=tuple(
            (name, parity.compare_slices(*columns, sample.parts[name], *more))
            for name in args.slice
        ),
        worst=parity.worst_rows(*columns, args.worst, sample.weights) if args.worst else (),
    )


def _with_tables(ids: Any, args: argparse.Namespace) -> Any:
    """The columns of ids, each with the table that --ids names after it."""
    tables = dict(column_and_table(item) for item in args.ids)
    return {name: column._replace(table=tables[name]) for name, column in ids.items()}
