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
import os
import sys
from typing import Any, Callable, Dict, List, Optional, Tuple

from parity.diagnosis.facts import check_source
from parity.equivalence import Verdict
from parity.junit import INCONCLUSIVE
from parity.schema import schema_text
from semisync.errors import UsageError

EXIT = {Verdict.EQUIVALENT: 0, Verdict.NOT_EQUIVALENT: 1, Verdict.INCONCLUSIVE: 2}

_BYTES_A_ROW = 150  # that an exact comparison of float64 scores takes at its peak, about
_TEXT_FACTOR = 10  # bytes of memory for each of a text file, about

_ASCII = str.maketrans({"−": "-", "±": "+-"})  # for terminals and logs of any encoding


def configure(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments."""
    parser.epilog = (
        "exit codes: 0 equivalent, 1 not equivalent, 2 inconclusive (0 with --inconclusive warn), "
        "3 bad input"
    )
    add = parser.add_argument
    add(
        "baseline",
        metavar="BASELINE",
        nargs="?",
        help="file with the scores to match",
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
    add("--label", metavar="COL", help="column of labels, 0 or 1")
    add("--baseline-score", metavar="COL", help="column of the baseline's scores")
    add(
        "--candidate-score",
        metavar="COL",
        help="column of the candidate's scores; with two files the baseline's name by default",
    )
    add("--key", metavar="COL", help="column that names a row, the same in both files")
    add(
        "--allow-misses",
        action="store_true",
        help="leave out rows whose key is in one file only, instead of refusing them",
    )
    add("--group", metavar="COL", help="what rows share that vary together, such as the user")
    add("--weight", metavar="COL", help="column of sample weights")
    add("--day", metavar="COL", help="compare day by day as well, and test for drift")
    add("--slice", metavar="COL", nargs="+", default=[], help="compare within each value as well")
    add(
        "--ids",
        metavar="COL[=TABLE]",
        nargs="+",
        default=[],
        help="columns that embedding tables are looked up with, to diagnose a difference",
    )
    add(
        "--baseline-model",
        metavar="PATH",
        help="to diagnose a difference: a checkpoint, a converted directory or a .yaml of settings",
    )
    add("--candidate-model", metavar="PATH", help="the same for the candidate")
    add("--worst", metavar="N", type=int, default=0, help="list the rows that differ most")
    add(
        "--margin",
        metavar="AUC",
        type=float,
        default=5e-4,
        help="the largest difference that does not matter (default: %(default)s)",
    )
    add("--title", default="AUC parity", help="heading of the report")
    add(
        "--inconclusive",
        choices=INCONCLUSIVE,
        default="fail",
        help="fail: exit code 2; warn: exit code 0 and a warning on stderr (default: %(default)s)",
    )
    add("--out", metavar="DIR", help="where report.html, .json, .xml (JUnit) and .md go")
    add("--print-schema", action="store_true", help="print the JSON Schema of report.json and end")


def run(args: argparse.Namespace) -> int:
    """Reads, compares, reports; returns the verdict's exit code."""
    if args.print_schema:
        print(schema_text(), end="")
        return 0
    _check(args)
    for path in (args.baseline_model, args.candidate_model):
        if path is not None:
            check_source(path)
    if args.merge:
        return _report_summary(args, {}, None)
    _choose_files(args)
    names = _column_names(args)
    if args.partial or _outgrows_memory(args):
        return _report_summary(args, names, args.baseline)

    from parity import compare, compare_runs, diagnose, readers
    from parity.comparison import check_margin

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


def _check(args: argparse.Namespace) -> None:
    """Refuses numbers without meaning, and what is missing to compare rows, or parts."""
    if args.worst < 0:
        raise UsageError(f"--worst is {args.worst}; a number of rows, 0 or more, is expected")
    if not args.memory >= 0:
        raise UsageError(f"--memory is {args.memory:g}; gigabytes, 0 or more, are expected")
    for option, value in (("--group", args.group), ("--worst", args.worst)):
        if value and (args.partial or args.merge):
            raise UsageError(
                f"{option} needs a second look at the rows, which parts do not keep; leave it out, "
                "or compare all rows at once"
            )
    if args.partial and args.baseline_runs:
        raise UsageError("--partial counts one comparison; runs are compared in memory")
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
    tables = dict(_column_and_table(item) for item in args.ids)
    return {name: column._replace(table=tables[name]) for name, column in ids.items()}


def _column_and_table(item: str) -> Tuple[str, Optional[str]]:
    column, _, table = item.partition("=")
    return column, table or None


def _choose_files(args: argparse.Namespace) -> None:
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


def _column_names(args: argparse.Namespace) -> Dict[str, Any]:
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
        "ids": tuple(dict.fromkeys(_column_and_table(item)[0] for item in args.ids)),
        "parts": tuple(dict.fromkeys([*args.slice, *([args.day] if args.day else [])])),
    }
